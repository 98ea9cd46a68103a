"""What the candidate allocates on the GPU: between red zones that nobody may touch, and poisoned until it is written."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from oracle.interpreter.host_compute import note_arithmetic, tensors_in
from oracle.interpreter.state import current
from oracle.poison import POISON
from oracle.worker.isolation import GIB
from oracle.worker.streams import streams

ZONE = 65536  # bytes on either side: the row after the next is still seen where rows have 32 KiB
HELD_BYTES = 2 * GIB  # what the candidate no longer uses is kept for so long, so that its zones can be looked at
ZONE_BYTE = 0x5C
_OTHER_BYTE = (0xFF, 0x5A)  # fills dtypes that have no poison pattern: NaN for floats, then a finite number
_ALIGN = 256  # as CUDA's allocator aligns
_AT_ONCE = 512  # allocations whose zones are brought together to be compared
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_empty, _cat, _as_tensor = torch.empty, torch.cat, torch.as_tensor
_default_device = torch.get_default_device
_capturing, _compiling = torch.cuda.is_current_stream_capturing, torch.compiler.is_compiling
_no_function = torch._C.DisableTorchFunction
_transforming = torch._C._functorch.peek_interpreter_stack
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_OutOfMemory = torch.OutOfMemoryError
_Tensor = torch.Tensor
_resize, _resize_as, _set, _copy = _Tensor.resize_, _Tensor.resize_as_, _Tensor.set_, _Tensor.copy_

_PLAIN = {torch.empty: None, torch.empty_strided: None, torch.empty_permuted: None, torch.zeros: 0, torch.ones: 1}
_LIKE = {
    **{torch.empty_like: None, _Tensor.new_empty: None, _Tensor.new_empty_strided: None},
    **{torch.zeros_like: 0, _Tensor.new_zeros: 0, torch.ones_like: 1, _Tensor.new_ones: 1},
}  # these take device and dtype from their first argument
_FILL = _PLAIN | _LIKE
# Of other functions by name, however they are called: their results move between red zones where they are new memory,
_MOVED = (
    "full full_like new_full clone contiguous to type type_as float double half bfloat16 int long short char byte bool "
    "cuda cat concat concatenate stack hstack vstack dstack column_stack tile repeat repeat_interleave pad "
    "constant_pad_nd flip roll arange linspace logspace eye tensor new_tensor scalar_tensor rand randn randint randperm "
    "rand_like randn_like randint_like new_zeros zeros zeros_like new_ones ones ones_like"
)
# and what these return is poisoned as well.
_UNWRITTEN = "empty empty_like empty_strided empty_permuted new_empty new_empty_strided"
_FRESH = dict.fromkeys(_MOVED.split(), False) | dict.fromkeys(_UNWRITTEN.split(), True)


class Allocations(TorchFunctionMode):
    """What the candidate's code runs under."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        ours = not (_compiling() or _capturing() or _transforming())  # what torch traces or captures is its own affair
        if _FILL.get(func, func) is not None:  # memory that nothing is written to is ready at once
            streams.operates()
        made = None
        if ours and func in _FILL:
            made = self._memory.allocate(func, args, kwargs, _FILL[func])
        elif ours and func in (_resize, _resize_as):
            made = self._memory.resized(func, args, kwargs)
        if made is not None:
            return made
        note_arithmetic(func, args, kwargs)
        name = getattr(func, "__name__", "").partition(".")[0]
        if not ours or name not in _FRESH:
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except _OutOfMemory:  # perhaps for what is held here
            self._memory.let_go()
            result = func(*args, **kwargs)
        return self._memory.moved(result, [args, [*kwargs.values()]], _FRESH[name])


class Owner:
    """Keeps a buffer on the GPU alive for as long as a tensor over its middle lives, which CUDA's array interface
    describes: such a tensor has a storage of its own, that begins where the tensor does."""

    def __init__(self, buffer: torch.Tensor, nbytes: int) -> None:
        self._buffer = buffer
        data = (buffer.data_ptr() + ZONE, False)
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": data, "version": 3}


@dataclass(frozen=True, eq=False)
class _Allocation:
    buffer: torch.Tensor
    stop: int  # of the tensor's bytes, which begin at ZONE
    shape: tuple[int, ...]
    owner: weakref.ref[Owner]

    def zones(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.buffer[:ZONE], self.buffer[self.stop :]


class Memory:
    """What the candidate has allocated: all of the call under way, and of earlier calls what it still uses."""

    def __init__(self) -> None:
        self._live: list[_Allocation] = []
        self._unswept = 0  # bytes allocated since what is no longer used was last dropped

    def restart(self) -> None:
        self._live = [allocation for allocation in self._live if allocation.owner() is not None]
        self._unswept = 0

    def allocate(self, function: Callable[..., Any], args: Any, kwargs: Any, fill: int | None) -> torch.Tensor | None:
        """What the torch factory would return on the GPU, in a larger buffer; `fill` None poisons it.

        None where torch itself is to serve the call: on another device, or out of the ordinary.
        """
        ordinary = kwargs.get("out") is None and kwargs.get("layout") in (None, torch.strided)
        device = _device(function, args, kwargs)  # asked for while the candidate's default device counts
        if not ordinary or torch.device(device).type != "cuda":
            return None
        changes = {"device": "meta", "requires_grad": False, "pin_memory": False}
        with _no_function():
            like = function(*args, **{**kwargs, **changes})
            if type(like) is not _Tensor or not like.numel():
                return None
            made = self.padded(like, device, fill)
            return made.requires_grad_(bool(kwargs.get("requires_grad")))

    def moved(self, made: Any, arguments: Any, unwritten: bool) -> Any:
        """A function's result between red zones, as a copy or (`unwritten`) poisoned; the result itself where it is no new
        memory on the GPU or out of the ordinary."""
        with _no_function():
            if not _ordinary(made) or not _is_new(made, arguments):
                return made
            try:
                moved = self.padded(made, made.device)
            except _OutOfMemory:  # for two of them there is no room
                return made
            return moved if unwritten else _copy(moved, made)

    def resized(self, function: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
        """A tensor that grew, between red zones of its own; None where torch itself is to serve the call."""
        tensor, *sizes = args
        with _no_function():
            if kwargs or not _plain(tensor) or not tensor.is_cuda or tensor.requires_grad:
                return None
            like = _empty(0, dtype=tensor.dtype, device="meta")
            like = _resize(like, *([sizes[0].shape] if function is _resize_as else sizes))
            old, offset = tensor.untyped_storage(), tensor.storage_offset() * tensor.element_size()
            kept = old.nbytes() - offset
            if like.numel() * like.element_size() <= kept:
                return None
            grown = self.padded(like, tensor.device)
            if kept > 0:
                before, after = (_empty(0, dtype=torch.uint8, device=tensor.device) for _ in range(2))
                _set(before, old, offset, (kept,), (1,))
                _copy(_set(after, grown.untyped_storage(), 0, (kept,), (1,)), before)
            return _set(tensor, grown.untyped_storage(), 0, like.shape, like.stride())

    def padded(self, like: torch.Tensor, device: Any, fill: int | None = None) -> torch.Tensor:
        """A tensor of the dtype, shape and strides of `like` between red zones."""
        count = 1 + sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
        nbytes = count * like.element_size()
        buffer = self._buffer(ZONE + -(-nbytes // _ALIGN) * _ALIGN + ZONE, device).fill_(ZONE_BYTE)
        middle = buffer[ZONE : ZONE + nbytes].view(like.dtype)
        if fill is None:
            _poison(middle, str(like.dtype).removeprefix("torch."))
        else:
            middle.fill_(fill)
        owner = Owner(buffer, nbytes)
        storage = _as_tensor(owner, device=buffer.device).untyped_storage()
        self._live.append(_Allocation(buffer, ZONE + nbytes, tuple(like.shape), weakref.ref(owner)))
        return _set(_empty(0, dtype=like.dtype, device=buffer.device), storage, 0, like.shape, like.stride())

    def check(self) -> None:
        """Note every allocation whose red zones were written to. It waits for the GPU."""
        intact: list[_Allocation] = []
        with _disable_current_modes():  # this is no arithmetic of the candidate's
            for start in range(0, len(self._live), _AT_ONCE):
                some = self._live[start : start + _AT_ONCE]
                if bool((_cat([zone for allocation in some for zone in allocation.zones()]) != ZONE_BYTE).any()):
                    some = [allocation for allocation in some if not _touched(allocation)]
                intact += some
        self._live = intact

    def let_go(self) -> None:
        """Look at everything, then give up what the candidate no longer uses."""
        with _no_function(), suppress(_OutOfMemory):  # looking takes some memory as well
            self.check()
        self.restart()

    def _buffer(self, nbytes: int, device: Any) -> torch.Tensor:
        if self._unswept + nbytes > HELD_BYTES:  # else the candidate could not free anything before the call ends
            self.let_go()
        self._unswept += nbytes
        try:
            return _empty(nbytes, dtype=torch.uint8, device=device)
        except _OutOfMemory:
            self.let_go()
            return _empty(nbytes, dtype=torch.uint8, device=device)


def _touched(allocation: _Allocation) -> bool:
    """Whether its red zones were written to; noted if so."""
    counts = [int((zone != ZONE_BYTE).sum().item()) for zone in allocation.zones()]
    for side, count in zip(("before", "after"), counts, strict=True):
        if count:
            shape = list(allocation.shape)
            current.find("out_of_bounds", f"{count} bytes {side} an allocated tensor of shape {shape} were written")
    return any(counts)


def _plain(tensor: Any) -> bool:
    """Whether its storage can be looked at: no subclass, no wrapper of a function's transform, strided."""
    kinds = (_Tensor, torch.nn.Parameter)
    return type(tensor) in kinds and not _is_wrapped(tensor) and tensor.layout == torch.strided and not tensor.is_nested


def _ordinary(made: Any) -> bool:
    """Whether it is a plain tensor on the GPU that fills a storage, each element in a place of its own."""
    if not _plain(made) or not made.is_cuda or made.requires_grad or made.is_quantized or not made.numel():
        return False
    if made.is_conj() or made.is_neg() or 0 in made.stride():
        return False
    return made.untyped_storage().nbytes() == made.numel() * made.element_size()


def _is_new(made: torch.Tensor, arguments: Any) -> bool:
    """Whether no argument lies in its storage."""
    given, address = list(tensors_in(arguments)), made.untyped_storage().data_ptr()
    return all(map(_plain, given)) and all(tensor.untyped_storage().data_ptr() != address for tensor in given)


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
