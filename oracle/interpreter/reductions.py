"""Reductions and scans with the rounding and the NaN rules of a GPU, at numpy's speed.

Sums of narrow floats round at every addition of a tree, since a GPU adds in the operand's own dtype. Any combine
function is applied to whole halves of a block (log₂ n calls), where the stock interpreter calls it once an element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as stock

from oracle.interpreter.bfloat16 import NARROW, TensorHandle, convert, np_dtype

_standard = tl.standard
_ARG_EXTREME = {
    _standard._argmax_combine_tie_break_left: np.argmax,
    _standard._argmax_combine_tie_break_fast: np.argmax,
    _standard._argmin_combine_tie_break_left: np.argmin,
    _standard._argmin_combine_tie_break_fast: np.argmin,
}
# maxnumf and minnumf: a NaN loses against a number
_EXTREME = {_standard._elementwise_max: np.fmax, _standard._elementwise_min: np.fmin}
_RUNNING = {_standard._sum_combine: np.add, _standard._prod_combine: np.multiply}


def tensor(values: np.ndarray, dtype: Any) -> Any:
    """A Triton tensor of the values, cast to the dtype; no dimensions make a scalar."""
    values = convert(np.asarray(values), np_dtype(dtype))
    if values.ndim == 0:
        return tl.core.tensor(TensorHandle(values.reshape(1), dtype), dtype)
    return tl.core.tensor(TensorHandle(values, dtype), tl.block_type(dtype, list(values.shape)))


def reduce(operation: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """`tl.reduce` of same-shaped blocks along `operation.axis` (None: over everything)."""
    arrays = [t.handle.data for t in inputs]
    types = [t.dtype for t in inputs]
    shape = arrays[0].shape
    axis = getattr(operation.axis, "value", operation.axis)
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
        kept = (1,) * len(shape)
    else:
        axis %= len(shape)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
    reduced = _reduced(operation.combine_fn, arrays, types, axis)
    return [
        tensor(a.reshape(kept) if operation.keep_dims else a, dtype) for a, dtype in zip(reduced, types, strict=True)
    ]


def _reduced(combine: Any, arrays: list[np.ndarray], types: list[Any], axis: int) -> list[np.ndarray]:
    first = arrays[0]
    if combine in _EXTREME and len(arrays) == 1:
        return [_EXTREME[combine].reduce(first, axis=axis)]
    if combine is _standard._sum_combine and len(arrays) == 1 and first.dtype not in NARROW:
        return [np.sum(first, axis=axis, dtype=first.dtype)]
    if combine in _ARG_EXTREME and len(arrays) == 2 and not (first != first).any():
        where = np.expand_dims(_ARG_EXTREME[combine](first, axis=axis), axis)
        return [np.squeeze(np.take_along_axis(a, where, axis), axis) for a in arrays]
    return _tree(combine, arrays, types, axis)


def _tree(combine: Any, arrays: list[np.ndarray], types: list[Any], axis: int) -> list[np.ndarray]:
    """Neighbours combined until one is left; order is kept, so that the function need not commute."""
    arrays = [np.moveaxis(a, axis, 0) for a in arrays]
    while len(arrays[0]) > 1:
        if len(arrays[0]) % 2:
            raise ValueError(f"reduction over {len(arrays[0])} elements: block sizes are powers of two")
        arrays = _combined(combine, [a[0::2] for a in arrays], [a[1::2] for a in arrays], types)
    return [a[0] for a in arrays]


def _combined(combine: Any, left: list[np.ndarray], right: list[np.ndarray], types: list[Any]) -> list[np.ndarray]:
    operands = [tensor(a, dtype) for side in (left, right) for a, dtype in zip(side, types, strict=True)]
    result = combine(*operands)
    parts = result if isinstance(result, (tuple, tl.tuple)) else (result,)
    shape = left[0].shape
    return [
        np.broadcast_to(convert(stock.interpreter_semantic.to_tensor(part).handle.data, np_dtype(dtype)), shape)
        for part, dtype in zip(parts, types, strict=True)
    ]


def scan(operation: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """`tl.associative_scan` of same-shaped blocks along `operation.axis`, inclusive; `reverse` runs from the end."""
    types = [t.dtype for t in inputs]
    axis = getattr(operation.axis, "value", operation.axis)
    arrays = [np.moveaxis(t.handle.data, axis, 0) for t in inputs]
    if operation.reverse:
        arrays = [a[::-1] for a in arrays]
    if operation.combine_fn in _RUNNING and len(arrays) == 1:
        arrays = [_RUNNING[operation.combine_fn].accumulate(arrays[0], axis=0, dtype=arrays[0].dtype)]
    else:
        arrays = _prefixes(operation.combine_fn, arrays, types)
    if operation.reverse:
        arrays = [a[::-1] for a in arrays]
    return [
        tensor(np.ascontiguousarray(np.moveaxis(a, 0, axis)), dtype) for a, dtype in zip(arrays, types, strict=True)
    ]


def _prefixes(combine: Any, arrays: list[np.ndarray], types: list[Any]) -> list[np.ndarray]:
    """Doubling: after step k every element holds the combination of its 2ᵏ predecessors and itself."""
    length, step = len(arrays[0]), 1
    while step < length:
        shifted = _combined(combine, [np.roll(a, step, axis=0) for a in arrays], arrays, types)
        arrays = [np.concatenate([a[:step], s[step:]]) for a, s in zip(arrays, shifted, strict=True)]
        step *= 2
    return arrays


def install() -> None:
    stock.ReduceOps.apply_impl = reduce
    stock.ScanOps.apply_impl = scan
