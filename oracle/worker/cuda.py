"""The CUDA device: inputs are copied to one arena on the GPU, and Triton compiles and launches kernels as it always does.

Around a call: what the candidate allocates is poisoned and has red zones, launches are counted, every autotune
configuration can be chosen, work on a stream that the caller's stream never waits for is noticed, and the caller's
allocator is limited. The warm parent imports torch and Triton but never starts CUDA; each fork does.

Not seen: undefined lanes and program order (the hardware decides both), memory that a candidate takes past torch's
allocator, and reads outside a tensor that stay inside the GPU's mapped memory.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton
import triton.runtime.autotuner
import triton.runtime.jit
from torch.overrides import TorchFunctionMode

from oracle.interpreter.host_compute import note_arithmetic
from oracle.interpreter.launches import autotuned
from oracle.interpreter.state import current
from oracle.poison import POISON
from oracle.worker.device import Ended
from oracle.worker.isolation import GIB, MIB
from oracle.worker.policies import POLICIES

MEMORY_BYTES = 16 * GIB  # of the GPU, per candidate
ZONE = 4096  # bytes on either side of an allocation
_ZONE_BYTE = 0x5C
_OTHER_BYTE = (0xFF, 0x5A)
_ALIGN = 256
_SPARE = 1 * MIB  # the arena on the GPU grows in these steps

_cpu, _synchronize = torch.Tensor.cpu, torch.cuda.synchronize
_no_function = torch._C.DisableTorchFunction


@dataclass
class _Streams:
    """Streams with launches that nothing has waited for yet, as raw handles. `caller` is the stream of the call."""

    caller: int = 0
    pending: set[int] = field(default_factory=set)

    def restart(self) -> None:
        self.caller, self.pending = _raw_stream(), set()

    def launched(self) -> None:
        stream = _raw_stream()
        if stream != self.caller:
            self.pending.add(stream)

    def waited(self) -> None:
        self.pending.clear()


_streams = _Streams()


def _raw_stream() -> int:
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device()) if torch.cuda.is_initialized() else 0


class Allocations(TorchFunctionMode):
    """What the candidate's code runs under: factories on the GPU give poisoned memory between red zones."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _EMPTY:
            note_arithmetic(func, args, kwargs)
            return func(*args, **kwargs)
        made = func(*args, **kwargs)
        if not _ours(made, kwargs):
            return made
        return DEVICE.padded(made)


_EMPTY = frozenset(
    {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.empty_permuted,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
)


def _ours(made: Any, kwargs: dict[str, Any]) -> bool:
    plain = type(made) is torch.Tensor and made.is_cuda and made.layout is torch.strided
    return plain and made.numel() > 0 and kwargs.get("out") is None


class Cuda:
    """See `oracle.worker.device.Device`."""

    asynchronous = True
    policy = POLICIES["cuda"]

    def __init__(self) -> None:
        self._arena: torch.Tensor | None = None
        self._inputs: list[dict[str, Any]] = []
        self._host: memoryview | None = None
        self._zones: list[tuple[torch.Tensor, int, int, tuple[int, ...]]] = []

    def warm(self) -> dict[str, Any]:
        torch.set_num_threads(1)
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
        triton.runtime.jit.JITFunction.run = _counted(triton.runtime.jit.JITFunction.run)
        triton.runtime.autotuner.Autotuner.run = autotuned
        _watch_streams()
        if torch.cuda.is_initialized():
            raise RuntimeError("CUDA was started in the warm parent: its forks could not use it")
        return {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}

    def start(self) -> None:
        torch.cuda.init()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY_BYTES / total))
        self._arena = torch.empty(_SPARE, dtype=torch.uint8, device="cuda")

    def running(self) -> AbstractContextManager[Any]:
        return Allocations()

    def place(self, arena: memoryview, inputs: list[dict[str, Any]]) -> list[Any]:
        self._host, self._inputs = arena, inputs
        end = max((item["start"] + item["bytes"] for item in inputs), default=0)
        assert self._arena is not None
        if end > self._arena.numel():
            self._arena = torch.empty(-(-end // _SPARE) * _SPARE, dtype=torch.uint8, device="cuda")
        if end:
            self._arena[:end].copy_(torch.frombuffer(arena, dtype=torch.uint8, count=end))
        tensors = []
        for item in inputs:
            storage = self._arena[item["start"] : item["start"] + item["bytes"]]
            flat = storage.view(getattr(torch, item["dtype"]))
            tensors.append(flat.as_strided(item["shape"], item["strides"], flat.storage_offset() + item["offset"]))
        return tensors

    def begin(self, call: dict[str, Any]) -> None:
        current.restart(reverse=False, poison=call["poison"], fill_lanes=False, config=call["config"])
        self._zones = []
        torch.cuda.set_stream(torch.cuda.default_stream())
        _synchronize()
        _streams.restart()

    def synchronize(self) -> None:
        _synchronize()

    def end(self) -> Ended:
        if _streams.pending:
            current.find("late_write", "a kernel was launched on a stream that the caller's stream never waits for")
        self._check_zones()
        return Ended(current.launches, list(current.findings), current.configs)

    def where(self, tensor: Any) -> str:
        """The device type "cuda" where the inputs are; a tensor in the machine's own memory is on "host"."""
        return {"cuda": "cuda", "cpu": "host"}.get(tensor.device.type, "elsewhere")

    def alias(self, tensor: Any) -> int | None:
        assert self._arena is not None
        if not tensor.is_cuda or not tensor.numel():
            return None
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        low = tensor.data_ptr() - self._arena.data_ptr()
        high = low + (last + 1) * tensor.element_size()
        for index, item in enumerate(self._inputs):
            if low < item["start"] + item["bytes"] and item["start"] < high:
                return index
        return None

    def fetch(self, tensor: Any, count: int) -> bytes:
        """Copied in the caller's stream, so that work of other streams may still be under way."""
        host = _cpu(tensor) if tensor.is_cuda else tensor
        flat = host.reshape(-1).view(torch.uint8) if host.ndim else host.reshape(1).view(torch.uint8)
        return flat.numpy().tobytes()[:count]

    def give_back(self) -> None:
        end = max((item["start"] + item["bytes"] for item in self._inputs), default=0)
        if end:
            assert self._arena is not None
            assert self._host is not None
            torch.frombuffer(self._host, dtype=torch.uint8, count=end).copy_(self._arena[:end])

    def padded(self, like: torch.Tensor) -> torch.Tensor:
        """A tensor as `like` in a larger buffer whose ends are red zones and whose middle is poison."""
        with _no_function():
            count = 1 + sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
            nbytes = count * like.element_size()
            room = -(-nbytes // _ALIGN) * _ALIGN
            buffer = torch.full((room + 2 * ZONE,), _ZONE_BYTE, dtype=torch.uint8, device=like.device)
            middle = buffer[ZONE : ZONE + nbytes].view(like.dtype)
            _poison(middle, str(like.dtype).removeprefix("torch."))
            tensor = middle.as_strided(like.shape, like.stride(), middle.storage_offset())
            self._zones.append((buffer, ZONE, ZONE + nbytes, tuple(like.shape)))
            return tensor.requires_grad_(like.requires_grad)

    def _check_zones(self) -> None:
        for buffer, start, stop, shape in self._zones:
            for side, zone in (("before", buffer[:start]), ("after", buffer[stop:])):
                touched = int((zone != _ZONE_BYTE).sum().item())
                if touched:
                    message = f"{touched} bytes {side} an allocated tensor of shape {list(shape)} were written"
                    current.find("out_of_bounds", message)
        self._zones = []


def _poison(memory: torch.Tensor, dtype: str) -> None:
    bits = POISON[current.poison].get(dtype)
    if bits is None:
        memory.view(torch.uint8).fill_(_OTHER_BYTE[current.poison])
        return
    size = memory.element_size()
    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    value = int(np.array(bits, dtype=f"u{size}").view(f"i{size}"))
    memory.view(signed).fill_(value)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """`JITFunction.run`, counting launches (a warm-up compiles and launches nothing) and the streams they go to."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        result = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup:
            current.launches += 1
            _streams.launched()
        return result

    return run


def _watch_streams() -> None:
    """Every way of waiting for another stream's work clears what is pending."""
    for holder, name in (
        (torch.cuda.Stream, "wait_stream"),
        (torch.cuda.Stream, "wait_event"),
        (torch.cuda.Stream, "synchronize"),
        (torch.cuda.Event, "wait"),
        (torch.cuda.Event, "synchronize"),
        (torch.cuda, "synchronize"),
    ):
        setattr(holder, name, _waiting(getattr(holder, name)))


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _streams.waited()
        return result

    return wait


DEVICE = Cuda()
