"""Runs one small candidate and looks at what is left of it."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path

import numpy as np

from oracle.backends import WorkerBackend
from oracle.worker.protocol import Call, Outcome, TensorBuffer

PRELUDE = """
import torch, triton, triton.language as tl

@triton.jit
def _kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(out_ptr + lanes, x + x, mask=lanes < n)

def right(x):
    out = torch.empty_like(x)
    n = x.numel()
    _kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out
"""
INPUT = np.arange(100, dtype=np.float32)


def buffer(values: np.ndarray, name: str = "x", guard: int = 4) -> TensorBuffer:
    """A contiguous argument with `guard` elements of 0xA5 bytes on both sides."""
    item = values.dtype.itemsize
    storage = np.full(values.nbytes + 2 * guard * item, 0xA5, np.uint8)
    storage[guard * item : guard * item + values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    strides = tuple(stride // item for stride in np.ascontiguousarray(values).strides)
    return TensorBuffer(name, str(values.dtype), values.shape, strides, guard, storage)


def source(body: str, top: str = "") -> str:
    """A candidate whose function `entry(x)` has the given body, after the given top-level lines."""
    return f"{PRELUDE}\n{textwrap.dedent(top)}\n\ndef entry(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def attempt(backend: WorkerBackend, text: str, timeout: float = 30.0, calls: int = 1) -> Outcome:
    """The outcome of the last of some calls of `entry` on INPUT. Afterwards nothing may be left of the process."""
    session = backend.open(text, "entry")
    try:
        for _ in range(calls):
            outcome = session.call(Call((buffer(INPUT),)), timeout)
    finally:
        session.close()
    nothing_left(backend)
    return outcome


def nothing_left(backend: WorkerBackend) -> None:
    """No process below the warm parent, no file in its folder."""
    warm, base = warm_parent(backend), backend._parent.base
    end = time.monotonic() + 5
    while (children(warm) or os.listdir(base)) and time.monotonic() < end:
        time.sleep(0.01)
    assert children(warm) == []
    assert os.listdir(base) == []


def warm_parent(backend: WorkerBackend) -> int:
    """The process that forks candidates: an ordinary user's lives in a process namespace, below the one that was started."""
    started = backend._parent.process.pid
    below = os.geteuid() != 0 and "pid_namespace" in backend.isolation
    return children(started)[0] if below else started


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kinds(outcome: Outcome) -> set[str]:
    return {finding.kind for finding in outcome.findings}
