"""Triton on the GPU, as it is but for what is counted: launches, the streams they go to, and the time compiling takes.

Autotuned kernels run the configuration that the judge names, and the fastest one only where the call is timed.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
import triton.backends.nvidia.compiler as nvidia
import triton.backends.nvidia.driver as driver
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner
from triton.runtime.cache import triton_key
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from oracle.interpreter.launches import autotuned
from oracle.interpreter.state import current
from oracle.worker import launcher

_ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # compute capabilities × 10 that are asked for in advance
_UNFIT = (OutOfResources, CompileTimeAssertionFailure, PTXASError)  # an autotuner passes over such a configuration

_RECORDED = "recorded_on"  # attribute of an event: the raw handle of the stream whose work it stands for

_tuned = Autotuner.run
_is_capturing = torch.cuda.is_current_stream_capturing


@dataclass
class Streams:
    """Streams with launches that nothing has waited for yet, as raw handles. `caller` is the stream of the call."""

    caller: int = 0
    pending: set[int] = field(default_factory=set)

    def restart(self) -> None:
        self.caller, self.pending = _raw_stream(), set()

    def launched(self) -> None:
        stream = _raw_stream()
        if stream != self.caller and not _is_capturing():
            self.pending.add(stream)

    def waited(self, stream: int | None = None) -> None:
        """For one stream's work, or for all."""
        self.pending = set() if stream is None else self.pending - {stream}


streams = Streams()


def install(told: Callable[[bool], None]) -> None:
    """Once, in the warm parent. `told` is called as a compilation begins (True) and ends (False)."""
    clock = _Clock(told)
    JITFunction.run = _counted(JITFunction.run)
    JITFunction._do_compile = clock.timed(JITFunction._do_compile)
    Autotuner.run = _autotuned
    torch.cuda.CUDAGraph.replay = _replayed(torch.cuda.CUDAGraph.replay)  # type: ignore[method-assign]
    _watch_waiting()
    launcher.install()


def warm() -> None:
    """Do once what every process would have to do again: hash Triton, build its C module, ask for the compilers' versions,
    and compile a first kernel. None of it needs the GPU. Raises where no C compiler can be run."""
    triton_key()
    for architecture in _ARCHITECTURES:
        with suppress(Exception):
            nvidia.get_ptxas_version(architecture)
            nvidia.get_ptxas(architecture)
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = folder
        driver.CudaUtils()
        driver.CudaUtils.__init__ = lambda self: None  # the one that there is stays
        source = ASTSource(_first, {"out_ptr": "*i32", "BLOCK": "constexpr"}, {(1,): 16})
        triton.compile(source, target=GPUTarget("cuda", 90, 32))


@triton.jit
def _first(out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.cumsum(lanes, 0), mask=lanes < BLOCK)


class _Clock:
    """Tells of compilations, the outermost one where they are nested or run in several threads. Loading what was compiled
    is not part of it: on a GPU that an endless kernel keeps busy it never ends."""

    def __init__(self, told: Callable[[bool], None]) -> None:
        self._told, self._depth, self._lock = told, 0, threading.Lock()

    def timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compiling(*args: Any, **kwargs: Any) -> Any:
            self._step(1)
            try:
                return original(*args, **kwargs)
            finally:
                self._step(-1)

        return compiling

    def _step(self, by: int) -> None:
        with self._lock:
            before, self._depth = self._depth, self._depth + by
            if 0 in (before, self._depth):
                self._told(by > 0)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """`JITFunction.run`: a warm-up compiles and launches nothing."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            current.hold()
        result = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup:
            current.launches += 1
            streams.launched()
        return result

    return run


def _replayed(original: Callable[..., Any]) -> Callable[..., Any]:
    def replay(self: Any) -> Any:
        current.launches += 1
        streams.launched()
        result = original(self)
        current.hold()  # what was captured could not be looked at: it had not run
        return result

    return replay


def _autotuned(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The `config`-th configuration, or the next that fits this GPU, as an autotuner would never choose one that does
    not. Where the call is timed, the fastest, as its author meant it."""
    if current.timed:
        return _tuned(self, *args, **kwargs)
    wanted = current.config
    for shift in range(len(self.configs)):
        current.config = wanted + shift
        try:
            return autotuned(self, *args, **kwargs)
        except _UNFIT:
            if shift + 1 == len(self.configs):
                raise
        finally:
            current.config = wanted
    return autotuned(self, *args, **kwargs)


def _raw_stream() -> int:
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device()) if torch.cuda.is_initialized() else 0


def _watch_waiting() -> None:
    """Every way of waiting for another stream's work. An event stands for the stream it was recorded on."""
    stream, event = torch.cuda.Stream, torch.cuda.Event
    event.record = _recording(event.record)  # type: ignore[method-assign]
    for holder, name, whose in (
        (stream, "wait_stream", lambda self, stream: _handle(stream)),
        (stream, "synchronize", lambda self: _handle(self)),
        (stream, "wait_event", lambda self, event: _recorded(event)),
        (event, "wait", lambda self, stream=None: _recorded(self)),
        (event, "synchronize", lambda self: _recorded(self)),
        (torch.cuda, "synchronize", lambda device=None: None),
    ):
        setattr(holder, name, _waiting(getattr(holder, name), whose))


def _handle(stream: Any) -> int | None:
    return getattr(stream, "cuda_stream", None)


def _recorded(event: Any) -> int | None:
    return getattr(event, _RECORDED, None)


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Event.record`, which `Stream.record_event` calls as well."""

    def record(self: Any, stream: Any = None) -> Any:
        result = original(self, stream)
        setattr(self, _RECORDED, _raw_stream() if stream is None else _handle(stream))
        return result

    return record


def _waiting(original: Callable[..., Any], whose: Callable[..., int | None]) -> Callable[..., Any]:
    """A way of waiting; `whose`, called alike, tells for which stream's work, None for everything (also where that is
    unknown)."""

    def wait(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        streams.waited(whose(*args, **kwargs))
        return result

    return wait
