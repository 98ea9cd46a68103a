"""Layouts: where a tensor's elements lie in its storage, with guards around and between them.

`contiguous`  row-major, at an aligned offset
`offset`      row-major, at an odd offset
`transposed`  the last two dims lie swapped (a .mT view); below rank 2: `strided`
`sliced`      the right half of a fused tensor: row pitch twice the row; below rank 2: `offset`
`strided`     every second element of the last dim
`expanded`    the first dim longer than 1 has stride 0 (a .expand view), so its values repeat; only float and bool
              arguments, and never one that is written
A case names one for all tensors ("sliced") or for one ("sliced:weight").
"""

from __future__ import annotations

import numpy as np

from oracle.dtypes import NUMPY
from oracle.worker.protocol import TensorBuffer

LAYOUTS = ("contiguous", "offset", "transposed", "sliced", "strided", "expanded")
GUARD = 64  # elements on each side: keeps the first element 64-byte aligned in every dtype

# Quiet NaNs with a payload of their own (truncations of one another, none of `oracle.poison`'s): a NaN that a kernel
# writes over a guard shows, and so does a guard that a kernel reads into its output.
GUARD_BITS = {
    "float64": 0x7FFD_ADAD_ADAD_ADAD,
    "float32": 0x7FED_6D6D,
    "float16": 0x7F6B,
    "bfloat16": 0x7FED,
}


def guard_fill(storage: np.ndarray, dtype: str) -> None:
    """Fill raw storage (uint8) with the dtype's guard: NaN for floats, the largest integer, True."""
    if dtype in GUARD_BITS:
        storage.view(f"<u{NUMPY[dtype].itemsize}")[:] = GUARD_BITS[dtype]
    else:
        storage.view(NUMPY[dtype])[:] = True if dtype == "bool" else np.iinfo(NUMPY[dtype]).max


def expanded_dim(shape: tuple[int, ...]) -> int | None:
    """The dim that `expanded` repeats: the first longer than 1."""
    return next((dim for dim, size in enumerate(shape) if size > 1), None)


def repeats(values: np.ndarray) -> np.ndarray:
    """The values that an expanded tensor can hold: the first slice of the expanded dim, repeated."""
    dim = expanded_dim(values.shape)
    return values if dim is None else np.broadcast_to(values.take([0], axis=dim), values.shape)


def place(name: str, dtype: str, values: np.ndarray, layout: str) -> TensorBuffer:
    """A buffer that holds `values` (of NUMPY[dtype], any shape) in `layout`. For `expanded` they must repeat."""
    shape = values.shape
    strides, start, span = _arrange(shape, layout)
    item = NUMPY[dtype].itemsize
    storage = np.empty((GUARD + start + span + GUARD) * item, dtype=np.uint8)
    guard_fill(storage, dtype)
    if values.size:
        _view(storage, dtype, shape, strides, GUARD + start)[...] = values
    return TensorBuffer(name, dtype, shape, strides, GUARD + start, storage)


def guard_mask(buffer: TensorBuffer) -> np.ndarray:
    """Bool per element of the storage: True where a guard lies (the rest belongs to the tensor)."""
    flags = np.ones(buffer.storage.nbytes // NUMPY[buffer.dtype].itemsize, dtype=np.uint8)
    if 0 not in buffer.shape:
        _view(flags, "uint8", buffer.shape, buffer.strides, buffer.offset)[...] = 0
    return flags.astype(np.bool_)


def _view(storage: np.ndarray, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    item = NUMPY[dtype].itemsize
    return np.ndarray(shape, NUMPY[dtype], storage.data, offset * item, tuple(stride * item for stride in strides))


def _arrange(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], int, int]:
    """Strides (in elements), distance of the first element from the guard, and elements spanned from there."""
    rank = len(shape)
    last = shape[-1] if shape else 1
    start = 0
    if layout == "transposed" and rank >= 2:
        swapped = _row_major((*shape[:-2], shape[-1], shape[-2]))
        strides = (*swapped[:-2], swapped[-1], swapped[-2])
    elif layout == "sliced" and rank >= 2:
        strides = _row_major(shape, pitch=2 * last)
        start = last
    elif layout in ("strided", "transposed") and rank:
        strides = _row_major(shape, pitch=2 * last, step=2)
    elif layout == "expanded" and (repeated := expanded_dim(shape)) is not None:
        once = _row_major((*shape[:repeated], 1, *shape[repeated + 1 :]))
        strides = (*once[:repeated], 0, *once[repeated + 1 :])
    else:
        strides = _row_major(shape)
        start = 1 if layout in ("offset", "sliced") else 0
    span = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return strides, start, span


def _row_major(shape: tuple[int, ...], pitch: int | None = None, step: int = 1) -> tuple[int, ...]:
    """Row-major strides with `step` between elements of a row and `pitch` (default: the row) between rows."""
    if not shape:
        return ()
    strides = [step]
    reach = shape[-1] if pitch is None else pitch
    for size in reversed(shape[1:-1] if len(shape) > 1 else ()):
        strides.append(max(reach, 1))
        reach *= max(size, 1)
    if len(shape) > 1:
        strides.append(max(reach, 1))
    return tuple(reversed(strides))
