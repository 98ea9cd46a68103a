"""Triton on the GPU, as it is but for what is counted: launches and the time compiling takes.

Autotuned kernels run the configuration that the judge names, and the fastest one only where the call is timed.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
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
from oracle.worker.streams import capturing, raw_stream, streams

_ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # compute capabilities × 10 that are asked for in advance
_UNFIT = (OutOfResources, CompileTimeAssertionFailure, PTXASError)  # an autotuner passes over such a configuration

_tuned = Autotuner.run


def install(told: Callable[[bool], None]) -> None:
    """Once, in the warm parent. `told` is called as a compilation begins (True) and ends (False)."""
    clock = _Clock(told)
    driver.CudaLauncher.__call__ = _counted(driver.CudaLauncher.__call__)
    JITFunction._do_compile = clock.timed(JITFunction._do_compile)
    Autotuner.run = _autotuned
    torch.cuda.CUDAGraph.replay = _replayed(torch.cuda.CUDAGraph.replay)  # type: ignore[method-assign]
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
    """`CudaLauncher.__call__`, which every road to a launch leads to: a kernel, or one that was compiled before."""

    def __call__(self: Any, grid_x: Any, grid_y: Any, grid_z: Any, stream: int, *args: Any, **kwargs: Any) -> Any:
        if capturing(stream):
            return original(self, grid_x, grid_y, grid_z, stream, *args, **kwargs)
        current.hold()
        streams.delay(stream)
        result = original(self, grid_x, grid_y, grid_z, stream, *args, **kwargs)
        current.launches += 1
        streams.launched(stream)
        return result

    return __call__


def _replayed(original: Callable[..., Any]) -> Callable[..., Any]:
    """`CUDAGraph.replay`: what was captured runs now, on the current stream. It counts as one launch."""

    def replay(self: Any) -> Any:
        stream = raw_stream()
        streams.delay(stream)
        result = original(self)
        current.launches += 1
        streams.launched(stream)
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
