"""What only the compiler refuses: every launch of a candidate compiled for sm_90, on a machine without a GPU.

The candidate's own host code runs on CPU tensors, as in the interpreter; each `kernel[grid](...)` compiles the kernel
for the arguments at hand and runs nothing, so that what the host code returns is meaningless. For a process of its own
that was started without TRITON_INTERPRET and with a private TRITON_CACHE_DIR, and that is killed from outside when its
time is up: a single compilation can take half a minute, and cannot be interrupted from inside.
"""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from oracle.errors import InfrastructureError
from oracle.interpreter import cuda, driver, launches, redirect
from oracle.interpreter.absent import absent_api
from oracle.interpreter.state import current

CONFIGURATIONS = 4  # autotune configurations compiled, at most

Arguments = tuple[Sequence[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Refusal:
    """A kernel that the compiler refuses. `absent` says so where the reason is an API that this Triton version lacks
    and another supported one has: then the kernel may be right."""

    kernel: str
    message: str
    absent: str | None = None


@dataclass
class Report:
    """`compiled` launches (repeated ones come from Triton's cache), refusals without repetition, whether every call and
    configuration was reached within the budget, and what trouble of ours (a compiler that cannot be started, no room
    for its files) kept a kernel from being compiled."""

    compiled: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    complete: bool = True
    trouble: str | None = None


_report = Report()
_compile = JITFunction.run


def install() -> None:
    """Once per process. Raises InfrastructureError in a process that interprets."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise InfrastructureError("the compile gate needs a process without TRITON_INTERPRET")
    cuda.install()
    redirect.install()
    driver.install()
    Autotuner.run = launches.autotuned
    JITFunction.run = _compiled


def check(source_path: str, entry: str, calls: Iterable[Arguments], budget: float = 30.0) -> Report:
    """Compile every launch that `entry` of the source makes in the calls, each (positional, keyword) CPU arguments.

    No call is begun after `budget` seconds. What the host code itself raises is not the compiler's refusal and is not
    reported: the interpreter has judged that.
    """
    global _report
    _report = Report()
    start = time.monotonic()
    with redirect.redirected(), suppress(Exception):
        function = runpy.run_path(source_path, run_name="candidate")[entry]
        for args, kwargs in calls:
            _one_call(function, args, kwargs, lambda: time.monotonic() - start < budget)
    return _report


def _one_call(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], in_time: Callable[[], bool]) -> None:
    """The call with each autotune configuration in turn (the first tells how many there are)."""
    config, configs = 0, 1
    while config < min(configs, CONFIGURATIONS):
        if not in_time():
            _report.complete = False
            return
        current.restart(config=config)
        with suppress(Exception):
            function(*args, **kwargs)
        configs = max(configs, current.configs)
        config += 1


def _compiled(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """Replaces `JITFunction.run`: compiles and never launches."""
    try:
        kernel = _compile(self, *args, grid=grid, warmup=True, **kwargs)
        kernel = kernel.result() if callable(getattr(kernel, "result", None)) else kernel
        if kernel.metadata.shared > driver.SHARED_MEMORY:
            raise OutOfResources(kernel.metadata.shared, driver.SHARED_MEMORY, "shared memory")
    except (OSError, MemoryError) as error:
        _report.trouble = _message(error)
        raise
    except Exception as error:
        message = _message(error)
        refusal = Refusal(self.__name__, message, absent_api(message))
        if refusal not in _report.refusals:
            _report.refusals.append(refusal)
        raise
    _report.compiled += 1
    return kernel


def _message(error: BaseException) -> str:
    """One line: the innermost reason and the place in the kernel where Triton names one."""
    text = " ".join(str(error).split())
    cause = error.__cause__
    while cause is not None:
        text = f"{text} {type(cause).__name__}: {' '.join(str(cause).split())}"
        cause = cause.__cause__
    return f"{type(error).__name__}: {text}"[:1000]
