"""What the candidate allocates on the GPU: between red zones that nobody may touch, and poisoned until it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from oracle.interpreter.host_compute import note_arithmetic
from oracle.interpreter.state import current
from oracle.poison import POISON
from oracle.worker.isolation import GIB
from oracle.worker.streams import streams

ZONE = 4096  # bytes on either side
HELD_BYTES = 2 * GIB  # what is kept until the call ends, so that its zones can be looked at
_ZONE_BYTE = 0x5C
_OTHER_BYTE = (0xFF, 0x5A)  # fills dtypes that have no poison pattern: NaN for floats, then a finite number
_ALIGN = 256  # as CUDA's allocator aligns
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_empty, _cat = torch.empty, torch.cat
_default_device = torch.get_default_device
_no_function = torch._C.DisableTorchFunction
_Tensor = torch.Tensor

_PLAIN = {torch.empty: None, torch.empty_strided: None, torch.empty_permuted: None, torch.zeros: 0, torch.ones: 1}
_LIKE = {
    **{torch.empty_like: None, _Tensor.new_empty: None, _Tensor.new_empty_strided: None},
    **{torch.zeros_like: 0, _Tensor.new_zeros: 0, torch.ones_like: 1, _Tensor.new_ones: 1},
}  # these take device and dtype from their first argument
_FILL = _PLAIN | _LIKE


class Allocations(TorchFunctionMode):
    """What the candidate's code runs under."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _FILL.get(func, func) is not None:  # memory that nothing is written to is ready at once
            streams.operates()
        if func in _FILL:
            made = self._memory.allocate(func, args, kwargs, _FILL[func])
            if made is not None:
                return made
        note_arithmetic(func, args, kwargs)
        return func(*args, **kwargs)


class Memory:
    """The allocations of one call."""

    def __init__(self) -> None:
        self._zones: list[tuple[torch.Tensor, int, int, tuple[int, ...]]] = []  # buffer, start, stop, shape
        self._held = 0

    def restart(self) -> None:
        self._zones, self._held = [], 0

    def allocate(self, function: Callable[..., Any], args: Any, kwargs: Any, fill: int | None) -> torch.Tensor | None:
        """What the torch factory would return on the GPU, in a larger buffer; `fill` None poisons it.

        None where torch itself is to serve the call: on another device, or out of the ordinary.
        """
        ordinary = kwargs.get("out") is None and kwargs.get("layout") in (None, torch.strided)
        if not ordinary or not _on_gpu(function, args, kwargs):
            return None
        changes = {"device": "meta", "requires_grad": False, "pin_memory": False}
        with _no_function():
            like = function(*args, **{**kwargs, **changes})
            if type(like) is not _Tensor or not like.numel():
                return None
            return self.padded(like, _device(function, args, kwargs), fill).requires_grad_(
                bool(kwargs.get("requires_grad"))
            )

    def padded(self, like: torch.Tensor, device: Any, fill: int | None = None) -> torch.Tensor:
        """A tensor of the dtype, shape and strides of `like` between red zones."""
        count = 1 + sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
        nbytes = count * like.element_size()
        start, stop = ZONE, ZONE + nbytes
        buffer = _empty(start + -(-nbytes // _ALIGN) * _ALIGN + ZONE, dtype=torch.uint8, device=device)
        buffer[:start].fill_(_ZONE_BYTE)
        buffer[stop:].fill_(_ZONE_BYTE)
        middle = buffer[start:stop].view(like.dtype)
        if fill is None:
            _poison(middle, str(like.dtype).removeprefix("torch."))
        else:
            middle.fill_(fill)
        self._hold(buffer, start, stop, tuple(like.shape))
        return middle.as_strided(like.shape, like.stride(), middle.storage_offset())

    def check(self) -> None:
        """Note every allocation whose red zones were written to. One look at all of them; it waits for the GPU."""
        with _disable_current_modes():  # this is no arithmetic of the candidate's
            zones = [zone for buffer, start, stop, _ in self._zones for zone in (buffer[:start], buffer[stop:])]
            if zones and bool((_cat(zones) != _ZONE_BYTE).any()):
                for buffer, start, stop, shape in self._zones:
                    for side, zone in (("before", buffer[:start]), ("after", buffer[stop:])):
                        touched = int((zone != _ZONE_BYTE).sum().item())
                        if touched:
                            message = f"{touched} bytes {side} an allocated tensor of shape {list(shape)} were written"
                            current.find("out_of_bounds", message)
        self.restart()

    def _hold(self, buffer: torch.Tensor, start: int, stop: int, shape: tuple[int, ...]) -> None:
        self._zones.append((buffer, start, stop, shape))
        self._held += buffer.numel()
        if self._held > HELD_BYTES:  # else the candidate could not free anything before the call ends
            self.check()


def _on_gpu(function: Any, args: Any, kwargs: Any) -> bool:
    return torch.device(_device(function, args, kwargs)).type == "cuda"


def _device(function: Any, args: Any, kwargs: Any) -> Any:
    """Where the factory would allocate."""
    device = kwargs.get("device")
    if device is None and function in _LIKE:
        first = args[0] if args else kwargs.get("input")
        return first.device if isinstance(first, _Tensor) else "cpu"
    if isinstance(device, int):
        return f"cuda:{device}"
    return _default_device() if device is None else device


def _poison(memory: torch.Tensor, dtype: str) -> None:
    bits = POISON[current.poison].get(dtype)
    if bits is None:
        memory.view(torch.uint8).fill_(_OTHER_BYTE[current.poison])
        return
    size = memory.element_size()
    value = int(np.array(bits, dtype=f"u{size}").view(f"i{size}"))
    memory.view(_INTEGERS[size]).fill_(value)
