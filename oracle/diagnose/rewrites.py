"""What a kernel seems to have computed: the reference on changed inputs gives the candidate's result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from oracle.diagnose.view import View
from oracle.dtypes import NUMPY, to_torch64
from oracle.inputs import decode
from oracle.worker.protocol import TensorBuffer

ELEMENT_LIMIT = 1 << 20  # of the inputs: beyond that running the reference again takes too long
BLOCKS = tuple(1 << power for power in range(4, 14))

Tensors = dict[str, torch.Tensor]


def strides_ignored(view: View) -> str | None:
    """Non-contiguous arguments read as if they were contiguous."""
    changed = {
        buffer.name: flat
        for buffer in view.inputs.tensors
        if (flat := _as_contiguous(buffer)) is not None and not torch.equal(flat, to_torch64(buffer.values()))
    }
    for name, flat in changed.items():
        if _gives(view, {name: flat}):
            return f"what {name} read as contiguous memory gives: its strides are ignored"
    if len(changed) > 1 and _gives(view, changed):
        return f"what {', '.join(changed)} read as contiguous memory give: their strides are ignored"
    return None


def keyword_ignored(view: View) -> str | None:
    """A keyword taken at its default."""
    for keyword in view.task.keywords:
        given = view.inputs.keywords.get(keyword.name, keyword.default)
        if given != keyword.default and _gives(view, {}, {keyword.name: decode(keyword.default)}):
            return f"what {keyword.name}={keyword.default} gives: {keyword.name} is ignored"
    return None


def argument_ignored(view: View) -> str | None:
    """One argument of several taken as 0, 1 or (a mask) all True."""
    tensors = _tensors(view)
    if len(tensors) < 2:
        return None
    for name, tensor in tensors.items():
        if tensor.dtype == torch.bool:
            if _gives(view, {name: torch.ones_like(tensor)}):
                return f"what {name} all True gives: {name} is ignored"
        elif tensor.is_floating_point():
            for value in (0, 1):
                if _gives(view, {name: torch.full_like(tensor, value)}):
                    return f"what {name} = {value} gives: {name} is ignored"
    return None


def padded_with_zeros(view: View) -> str | None:
    """Lanes past the end of the reduced dim take part as zeros."""
    size = _reduced(view)
    if size is None:
        return None
    for end in sorted({1 << (size - 1).bit_length()} | {-(-size // block) * block for block in BLOCKS}):
        if end > size and _gives(
            view, {name: _padded(view, name, end - size) for name in _reduced_names(view)}, crop=True
        ):
            return f"what {view.task.reduces} padded with zeros from {size} to {end} gives: masked lanes take part"
    return None


def cut_off(view: View) -> str | None:
    """Only whole blocks, only the first block, or only the last block of the reduced dim take part."""
    size = _reduced(view)
    if size is None:
        return None
    for start, end in _spans(size):
        parts = {name: _narrowed(view, name, start, end) for name in _reduced_names(view)}
        if _gives(view, parts):
            which = f"the first {end}" if start == 0 else f"the last {end - start}"
            return f"what {which} of {size} along {view.task.reduces} give: the rest is left out"
    return None


def nan_as_zero(view: View) -> str | None:
    """Non-finite inputs taken as 0."""
    for label, test in (("NaN", torch.isnan), ("an infinity", torch.isinf)):
        changed = {
            name: torch.where(test(tensor), torch.zeros_like(tensor), tensor)
            for name, tensor in _tensors(view).items()
            if tensor.is_floating_point() and test(tensor).any()
        }
        if changed and _gives(view, changed):
            return f"what the reference gives with 0 in place of {label}"
    return None


# A shrunk case keeps a layout or a keyword only where the failure needs it: asked before anything else.
TELLING: tuple[Callable[[View], str | None], ...] = (strides_ignored, keyword_ignored)

PATTERNS: tuple[Callable[[View], str | None], ...] = (nan_as_zero, argument_ignored, padded_with_zeros, cut_off)


# --- running the reference on changed arguments ----------------------------------------------------------------------


def _gives(view: View, tensors: Tensors, keywords: dict[str, Any] | None = None, crop: bool = False) -> bool:
    """Whether the reference on the changed arguments gives the candidate's result, wherever that is judged."""
    if sum(buffer.values().size for buffer in view.inputs.tensors) > ELEMENT_LIMIT:
        return False
    args, kwargs = view.inputs.arguments64()
    names = [tensor.name for tensor in view.inputs.form.tensors if not tensor.keyword]
    args = tuple(tensors.get(name, value) for name, value in zip(names, args, strict=False)) + args[len(names) :]
    leading = [keyword.name for keyword in view.task.keywords if keyword.positional]
    values = list(args)
    for name, value in (keywords or {}).items():
        if name in leading and len(names) + leading.index(name) < len(values):
            values[len(names) + leading.index(name)] = value
        else:
            kwargs[name] = value
    kwargs |= {name: tensors[name] for name in kwargs if name in tensors}
    try:
        with torch.no_grad():
            result = view.task.reference(*values, **kwargs)
    except Exception:  # the changed arguments need not be legal
        return False
    outputs = result if isinstance(result, tuple | list) else (result,)
    place = [output.name for output in view.task.outputs].index(view.quantity.name) if _is_output(view) else None
    if place is None or place >= len(outputs) or not isinstance(outputs[place], torch.Tensor):
        return False
    other = outputs[place].detach().double().numpy()
    if crop and other.ndim == len(view.shape):
        other = other[tuple(slice(size) for size in view.shape)]
    return view.matches(other, view.quantity.judged)


def _is_output(view: View) -> bool:
    return view.quantity.name in {output.name for output in view.task.outputs}


def _tensors(view: View) -> Tensors:
    return {buffer.name: to_torch64(buffer.values()) for buffer in view.inputs.tensors}


def _as_contiguous(buffer: TensorBuffer) -> torch.Tensor | None:
    """What a kernel sees that ignores the strides, or None where memory ends before."""
    flat = buffer.storage.view(NUMPY[buffer.dtype])[buffer.offset :][: int(np.prod(buffer.shape))]
    return to_torch64(flat.reshape(buffer.shape)) if flat.size == int(np.prod(buffer.shape)) else None


# --- the reduced dim -------------------------------------------------------------------------------------------------


def _reduced(view: View) -> int | None:
    name = view.task.reduces
    size = view.inputs.case.dims.get(name, 0) if name else 0
    return size if size > 1 else None


def _reduced_names(view: View) -> list[str]:
    return [tensor.name for tensor in view.inputs.form.tensors if view.task.reduces in tensor.shape]


def _axis(view: View, name: str) -> int:
    shape = next(tensor.shape for tensor in view.inputs.form.tensors if tensor.name == name)
    return shape.index(view.task.reduces or "")


def _padded(view: View, name: str, count: int) -> torch.Tensor:
    tensor, axis = _tensors(view)[name], _axis(view, name)
    filler = torch.zeros((*tensor.shape[:axis], count, *tensor.shape[axis + 1 :]), dtype=tensor.dtype)
    return torch.cat([tensor, filler], dim=axis)


def _narrowed(view: View, name: str, start: int, end: int) -> torch.Tensor:
    return _tensors(view)[name].narrow(_axis(view, name), start, end - start)


def _spans(size: int) -> Iterator[tuple[int, int]]:
    """Ranges of the reduced dim that a kernel with blocks may use alone: whole blocks, the first, the last."""
    seen = set()
    for block in BLOCKS:
        if block < size:
            last = (size - 1) // block * block
            for span in ((0, size // block * block), (0, block), (last, size)):
                if span not in seen and span != (0, size):
                    seen.add(span)
                    yield span
