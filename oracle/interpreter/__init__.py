"""Triton's interpreter, repaired and watchful: the process of a candidate that has no GPU.

It computes bfloat16, float16 and float8 as torch does, checks every address a kernel touches, fills undefined lanes and
fresh memory with poison, redirects "cuda" to the CPU, and lets right kernels run that the stock interpreter refuses.
What it finds is diagnostic: it lives in the candidate's process, and may fail a candidate, never pass one.

Use, in a process that has TRITON_INTERPRET=1 set before Triton is imported:

    install()                                   # once; patches for good and tests itself
    with redirected():
        ...execute the candidate's module...
        begin_call(reverse=False, poison=0, fill_lanes=False, ranges=[(first_byte, past_last_byte), ...])
        result = entry(*inputs)
        launches, findings = end_call()

What it does not see: TF32, races inside a launch, streams, what only the compiler refuses (see `oracle.compile_gate`).
"""

from __future__ import annotations

from oracle.interpreter import (
    allocations,
    bfloat16,
    cuda,
    driver,
    launches,
    libdevice,
    memory,
    redirect,
    reductions,
    selftest,
)
from oracle.interpreter.errors import KernelError, OutOfBounds, Unsupported
from oracle.interpreter.redirect import device_of, is_host, redirected
from oracle.interpreter.state import current

__all__ = [
    "KernelError",
    "OutOfBounds",
    "Unsupported",
    "begin_call",
    "configurations",
    "device_of",
    "end_call",
    "install",
    "is_host",
    "redirected",
    "unsupported",
]

_installed = False


def install() -> None:
    """Patch torch and Triton in this process and test the result; a second call does nothing.

    Raises InfrastructureError if Triton was imported without TRITON_INTERPRET=1, if its version is not supported or if
    it does not behave as expected.
    """
    global _installed
    if _installed:
        return
    selftest.check_version()
    bfloat16.install()
    reductions.install()
    memory.install()
    launches.install()
    libdevice.install(launches.patch_builtins)
    cuda.install()
    redirect.install()
    driver.install()
    selftest.check_behaviour()
    _installed = True


def begin_call(*, reverse: bool, poison: int, fill_lanes: bool, ranges: list[tuple[int, int]], config: int = 0) -> None:
    """Start one call of the candidate's function (see `oracle.worker.protocol.Call` for the first three).

    `ranges`: [first byte, one past the last) of each input's own elements. `config`: which autotune configuration.
    """
    current.restart(reverse=reverse, poison=poison, fill_lanes=fill_lanes, config=config)
    memory.memory.restart(ranges)


def end_call() -> tuple[int, list[tuple[str, str]]]:
    """Launches since `begin_call`, and findings: (failure kind or "note", message)."""
    allocations.check_zones()
    memory.memory.restart([])
    return current.launches, list(current.findings)


def configurations() -> int:
    """The largest number of autotune configurations that a kernel of this call chose from."""
    return current.configs


def unsupported() -> str | None:
    """What this call needed and the interpreter cannot do, even if the candidate caught the exception."""
    return current.unsupported
