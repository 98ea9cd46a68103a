"""A Triton driver for a GPU that is not there: it answers what host code asks, and describes an sm_90 device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.testing
from triton.backends.compiler import GPUTarget

TARGET = GPUTarget("cuda", 90, 32)
SHARED_MEMORY = 232448  # bytes that one program may use on sm_90
PROPERTIES = {
    "max_shared_mem": SHARED_MEMORY,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 2619000,
    "mem_bus_width": 5120,
}


class Utils:
    """The part of Triton's C module that host code reaches."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return dict(PROPERTIES)

    def load_binary(self, *args: Any) -> tuple[int, int, int, int, int]:
        return (0, 0, 32, 0, 1024)

    def unload_module(self, *args: Any) -> None: ...


class Driver:
    """Stands where `triton.runtime.driver.active` is."""

    utils = Utils()

    @staticmethod
    def launcher_cls(*args: Any) -> Callable[..., None]:
        return lambda *launch: None

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return do_bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None: ...

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind


def do_bench(fn: Callable[[], Any], *args: Any, quantiles: Any = None, return_mode: str = "mean", **named: Any) -> Any:
    """Runs the function once: milliseconds, one for each quantile where quantiles are asked for."""
    start = time.perf_counter()
    fn()
    elapsed = 1e3 * (time.perf_counter() - start)
    if quantiles is not None:
        return [elapsed for _ in quantiles] if len(quantiles) > 1 else elapsed
    return [elapsed] if return_mode == "all" else elapsed


def install() -> None:
    triton.runtime.driver.set_active(Driver())
    triton.testing.do_bench = do_bench
    triton.testing.do_bench_cudagraph = do_bench
