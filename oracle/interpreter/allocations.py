"""Memory that the candidate allocates: poisoned, and with red zones around it that nobody may touch."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from oracle.interpreter.state import current
from oracle.poison import POISON

ZONE = 4096  # bytes on either side
_ALIGN = 256  # as CUDA's allocator aligns
_ZONE_BYTE = 0x5C
_OTHER_BYTE = (0xFF, 0x5A)  # fills dtypes that have no poison pattern: NaN for floats, then a finite number


@dataclass(frozen=True)
class _Allocation:
    buffer: weakref.ref[np.ndarray]
    start: int  # offset of the tensor in the buffer
    stop: int
    address: int
    shape: tuple[int, ...]


_live: list[_Allocation] = []


def extents() -> list[tuple[int, int]]:
    """[first byte, one past the last) of every allocation that is still alive."""
    _live[:] = [allocation for allocation in _live if allocation.buffer() is not None]
    return [(a.address, a.address + a.stop - a.start) for a in _live]


def allocate(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], fill: Any = None) -> torch.Tensor | None:
    """What the torch factory would return on the CPU, in memory of ours; `fill` None poisons it.

    None where the call is out of the ordinary (an `out=`, a sparse layout, no elements): torch is to serve it.
    """
    if kwargs.get("out") is not None or kwargs.get("layout", torch.strided) is not torch.strided:
        return None
    like = function(*args, **{**kwargs, "device": "meta", "requires_grad": False, "pin_memory": False})
    if not like.numel():
        return None
    count = 1 + sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
    nbytes = count * like.element_size()
    buffer = np.empty(nbytes + 2 * ZONE + _ALIGN, np.uint8)
    start = ZONE + -(buffer.ctypes.data + ZONE) % _ALIGN
    stop = start + nbytes
    buffer[:start] = _ZONE_BYTE
    buffer[stop:] = _ZONE_BYTE
    if fill is None:
        _poison(buffer[start:stop], str(like.dtype).removeprefix("torch."))
    flat = torch.frombuffer(buffer, dtype=like.dtype, count=count, offset=start)
    tensor = torch.empty(0, dtype=like.dtype).set_(flat.untyped_storage(), 0, like.shape, like.stride())
    if fill is not None:
        tensor.fill_(fill)
    _live.append(_Allocation(weakref.ref(buffer), start, stop, buffer.ctypes.data + start, tuple(like.shape)))
    return tensor.requires_grad_(bool(kwargs.get("requires_grad")))


def _poison(memory: np.ndarray, dtype: str) -> None:
    bits = POISON[current.poison].get(dtype)
    if bits is None:
        memory[:] = _OTHER_BYTE[current.poison]
        return
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    memory.view(f"u{size}")[:] = bits


def check_zones() -> None:
    """Note every living allocation whose red zones were written to."""
    for allocation in _live:
        buffer = allocation.buffer()
        if buffer is None:
            continue
        for side, zone in (("before", buffer[: allocation.start]), ("after", buffer[allocation.stop :])):
            touched = int(np.count_nonzero(zone != _ZONE_BYTE))
            if touched:
                message = f"{touched} bytes {side} an allocated tensor of shape {list(allocation.shape)} were written"
                current.find("out_of_bounds", message)
                zone[:] = _ZONE_BYTE
