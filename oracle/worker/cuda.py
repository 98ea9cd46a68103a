"""The CUDA device: inputs are copied to one arena on the GPU, and Triton compiles and launches kernels as it always does.

Around a call: what the candidate allocates is poisoned and has red zones, as the inputs have, launches are counted, every
autotune configuration can be chosen, work on a stream that the caller's stream never waits for is noticed, and the
caller's allocator is limited. The warm parent imports torch and Triton but never starts CUDA; each fork does.

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
from oracle.worker.cuda_arena import Arena
from oracle.worker.cuda_memory import Allocations, Memory
from oracle.worker.device import Columns, Ended, unheard
from oracle.worker.held import Held
from oracle.worker.isolation import GIB, MIB
from oracle.worker.policies import POLICIES
from oracle.worker.repeating import repeat
from oracle.worker.streams import streams

MEMORY_BYTES = 16 * GIB  # of the GPU, per candidate
OWN_BYTES = 1 * GIB  # beyond that, for what looks at the candidate's memory after a call
PINNED_BYTES = 4 * GIB  # of the host
_QUEUES = 2  # of a context: 16 side by side start twice as fast as with the usual 8; a side stream has its own

_cpu, _synchronize = torch.Tensor.cpu, torch.cuda.synchronize
_set_fraction = torch.cuda.set_per_process_memory_fraction
_gpu_stats = getattr(torch._C, "_cuda_memoryStats", lambda _device: {"reserved_bytes": {"all": {"peak": 0}}})
_pinned_stats: Callable[[], dict[str, Any]] = getattr(torch._C, "_cuda_hostMemoryStats", dict)
_set_stream, _default_stream = torch.cuda.set_stream, torch.cuda.default_stream


class Cuda:
    """See `oracle.worker.device.Device`."""

    asynchronous = True
    policy = POLICIES["cuda"]

    def __init__(self) -> None:
        self.told: Callable[[bool], None] = unheard
        self._arena, self._memory = Arena(), Memory()
        self._fractions: tuple[float, float] | None = None  # of the GPU's memory: for the candidate, for our own checks

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
        self._fractions = (min(1.0, MEMORY_BYTES / total), min(1.0, (MEMORY_BYTES + OWN_BYTES) / total))
        self._limit(0)
        self._arena.start()

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
        return self._arena.place(arena, inputs)

    def begin(self, call: dict[str, Any]) -> None:
        timed = bool(call["timed"])
        current.restart(reverse=False, poison=call["poison"], fill_lanes=False, config=call["config"], timed=timed)
        current.watched, current.held = call["watched"], Held() if call["held"] else None
        self._memory.restart()
        self._limit(0)  # the candidate may have lifted it
        _set_stream(_default_stream())
        _synchronize()  # the inputs are there for every stream
        streams.restart()

    def repeat(self, tensors: list[Any], offsets: list[int], call: Callable[[], Any]) -> tuple[Any, Columns]:
        return repeat(tensors, offsets, call, lambda: current.launches)

    def synchronize(self) -> None:
        _synchronize()

    def end(self) -> Ended:
        held = current.held.everything() if current.held else []
        self._check_taken()
        self._limit(1)
        self._memory.check()
        self._arena.check()
        return Ended(current.launches, list(current.findings), current.configs, held=held)

    def where(self, tensor: Any) -> str:
        """The device type "cuda" where the inputs are; a tensor in the machine's own memory is on "host"."""
        return {"cuda": "cuda", "cpu": "host"}.get(tensor.device.type, "elsewhere")

    def alias(self, tensor: Any) -> int | None:
        return self._arena.alias(tensor)

    def fetch(self, tensor: Any, count: int) -> bytes:
        """Copied in the caller's stream, so that work of other streams may still be under way."""
        host = _cpu(tensor) if tensor.is_cuda else tensor
        flat = host.reshape(-1).view(torch.uint8) if host.ndim else host.reshape(1).view(torch.uint8)
        return flat.numpy().tobytes()[:count]

    def give_back(self) -> None:
        self._arena.give_back()

    def _limit(self, which: int) -> None:
        if self._fractions is not None:
            _set_fraction(self._fractions[which])

    def _check_taken(self) -> None:
        """Note what torch's allocators took beyond the limits: a call may have lifted that of the GPU."""
        if self._fractions is None:
            return
        gpu = _gpu_stats(0)["reserved_bytes"]["all"]["peak"]
        if gpu > MEMORY_BYTES + OWN_BYTES + MIB:
            current.find("memory_limit", f"{gpu / GIB:.1f} GiB of the GPU's memory were taken")
        pinned = _pinned_stats().get("allocated_bytes", {}).get("peak", 0)
        if pinned > PINNED_BYTES:
            current.find("memory_limit", f"{pinned / GIB:.1f} GiB of the host's memory were pinned")


DEVICE = Cuda()
