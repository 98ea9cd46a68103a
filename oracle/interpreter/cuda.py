"""`torch.cuda` of a machine without a GPU, answering as an sm_90 device would. Nothing is asynchronous here."""

from __future__ import annotations

import contextlib
import time
import types
from typing import Any

import torch

from oracle.interpreter.errors import Unsupported

DEVICE = torch.device("cuda", 0)
_MEMORY = 80 << 30
PROPERTIES = types.SimpleNamespace(
    name="interpreter (sm_90)",
    major=9,
    minor=0,
    total_memory=_MEMORY,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=50 << 20,
    warp_size=32,
    is_integrated=False,
    is_multi_gpu_board=False,
    gcnArchName="",
)


class Stream:
    """A stream on which everything is done at once."""

    device, device_index, cuda_stream, priority = DEVICE, 0, 0, 0

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None: ...

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def record_event(self, event: Any = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Event:
    """An event that has happened as soon as it is recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        return 1e3 * (end_event._time - self._time)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...

    def wait(self, stream: Any = None) -> None: ...


class Device(contextlib.AbstractContextManager[None]):
    """`torch.cuda.device(...)` and `device_of(...)`."""

    def __init__(self, device: Any = None) -> None: ...

    def __exit__(self, *exc: Any) -> None: ...


class Generator(torch.Generator):
    """A generator whose device, if "cuda", is the CPU."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        on_cpu = torch.device(device).type == "cuda"
        return super().__new__(cls, "cpu" if on_cpu else device)  # type: ignore[call-arg]


_STREAM = Stream()


def _refused(what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"{what} cannot run in the interpreter")

    return refuse


def _always(value: Any) -> Any:
    return lambda *args, **kwargs: value


_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported"), True),
    **dict.fromkeys(("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved"), 0),
    **dict.fromkeys(("max_memory_reserved", "initial_seed", "utilization"), 0),
    **dict.fromkeys(("init", "set_device", "synchronize", "empty_cache", "ipc_collect", "set_stream"), None),
    **dict.fromkeys(("reset_peak_memory_stats", "reset_max_memory_allocated", "_lazy_init", "_sleep"), None),
    **dict.fromkeys(("current_stream", "default_stream"), _STREAM),
    "device_count": 1,
    "get_device_name": PROPERTIES.name,
    "get_device_capability": (9, 0),
    "get_device_properties": PROPERTIES,
    "get_arch_list": ["sm_90"],
    "mem_get_info": (_MEMORY, _MEMORY),
    "memory_stats": {},
}
_REPLACED: dict[str, Any] = {
    "Stream": Stream,
    "Event": Event,
    "ExternalStream": Stream,
    "device": Device,
    "device_of": Device,
    "stream": lambda stream: stream if stream is not None else _STREAM,
    "manual_seed": torch.default_generator.manual_seed,
    "manual_seed_all": lambda seed: None,  # torch.manual_seed calls this after seeding the CPU
    "CUDAGraph": _refused("a CUDA graph"),
    "graph": _refused("a CUDA graph"),
}


def install() -> None:
    """Patch `torch.cuda` and what else asks for its types, for good."""
    for name, answer in _ANSWERS.items():
        setattr(torch.cuda, name, _always(answer))
    for name, replacement in _REPLACED.items():
        setattr(torch.cuda, name, replacement)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, _always(0))
    torch.Generator = Generator  # type: ignore[misc]
    torch.Tensor.record_stream = _always(None)  # type: ignore[method-assign]
