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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import triton

from oracle.interpreter.host_compute import watching
from oracle.interpreter.state import current
from oracle.worker import cuda_launches
from oracle.worker.cuda_memory import Allocations, Memory
from oracle.worker.device import Columns, Ended, unheard
from oracle.worker.held import Held
from oracle.worker.isolation import GIB, MIB
from oracle.worker.policies import POLICIES
from oracle.worker.repeating import repeat
from oracle.worker.streams import streams

MEMORY_BYTES = 16 * GIB  # of the GPU, per candidate
_QUEUES = 2  # of a context: 16 side by side start twice as fast as with the usual 8; a side stream has its own
_SPARE = 1 * MIB  # the arena on the GPU grows in these steps

_cpu, _synchronize = torch.Tensor.cpu, torch.cuda.synchronize
_set_stream, _default_stream = torch.cuda.set_stream, torch.cuda.default_stream


class Cuda:
    """See `oracle.worker.device.Device`."""

    asynchronous = True
    policy = POLICIES["cuda"]

    def __init__(self) -> None:
        self.told: Callable[[bool], None] = unheard
        self._arena: torch.Tensor | None = None
        self._inputs: list[dict[str, Any]] = []
        self._host: memoryview | None = None
        self._memory = Memory()

    def warm(self) -> dict[str, Any]:
        torch.set_num_threads(1)
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", str(_QUEUES))
        cuda_launches.warm()
        cuda_launches.install(lambda begun: self.told(begun))
        if torch.cuda.is_initialized():
            raise RuntimeError("CUDA was started in the warm parent: its forks could not use it")
        return {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}

    def start(self) -> None:
        torch.cuda.init()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY_BYTES / total))
        self._arena = torch.empty(_SPARE, dtype=torch.uint8, device="cuda")

    @contextmanager
    def running(self) -> Iterator[None]:
        """On leaving, the caller's stream is the current one again: what follows must not wait for the candidate's. What a
        timed call allocates is left as it is: poison and red zones take time."""
        try:
            with nullcontext() if current.timed else Allocations(self._memory), watching():
                yield
        finally:
            _set_stream(_default_stream())
            if streams.unwaited():
                current.find("late_write", "a kernel was launched on a stream that the caller's stream never waits for")

    def place(self, arena: memoryview, inputs: list[dict[str, Any]]) -> list[Any]:
        self._host, self._inputs = arena, inputs
        end = self._end()
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
        timed = bool(call["timed"])
        current.restart(reverse=False, poison=call["poison"], fill_lanes=False, config=call["config"], timed=timed)
        current.watched, current.held = call["watched"], Held() if call["held"] else None
        self._memory.restart()
        _set_stream(_default_stream())
        _synchronize()  # the inputs are there for every stream
        streams.restart()

    def repeat(self, tensors: list[Any], offsets: list[int], call: Callable[[], Any]) -> tuple[Any, Columns]:
        return repeat(tensors, offsets, call, lambda: current.launches)

    def synchronize(self) -> None:
        _synchronize()

    def end(self) -> Ended:
        held = current.held.everything() if current.held else []
        self._memory.check()
        return Ended(current.launches, list(current.findings), current.configs, held=held)

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
        end = self._end()
        if end:
            assert self._arena is not None
            assert self._host is not None
            torch.frombuffer(self._host, dtype=torch.uint8, count=end).copy_(self._arena[:end])

    def _end(self) -> int:
        """Where the last input's storage ends in the arena."""
        return max((item["start"] + item["bytes"] for item in self._inputs), default=0)


DEVICE = Cuda()
