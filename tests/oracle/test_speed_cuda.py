"""Timing on a GPU: a right kernel gets a sane time, and what would cheat the clock is flagged or gains nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentloop.content import load_tasks
from oracle.backends import cuda_device, open_backend
from oracle.corpus import kernels
from oracle.judge import Judge
from oracle.speed import Speed, Stopwatch

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]

PRELUDE = """
import torch
import triton
import triton.language as tl

@triton.jit
def _add(x_ptr, y_ptr, o_ptr, n, work, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    for _ in range(work):
        x = x + y
        x = x - y
    tl.store(o_ptr + i, x + y, mask=i < n)

@triton.jit
def _nothing(o_ptr):
    pass

def right(x, y, work=0):
    x, y = torch.broadcast_tensors(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    if out.numel():
        _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), work, BLOCK=1024)
    return out

kept = {}
seen = [0]
"""

CACHED = """
key = (x.data_ptr(), y.data_ptr(), x.shape)
if key not in kept:
    kept[key] = right(x, y)
_nothing[(1,)](x)
return kept[key]
"""
EVENTS = """
if not seen[0]:
    seen[0] = 1
    class Fast(torch.cuda.Event):
        def elapsed_time(self, other):
            return 1e-3
    torch.cuda.Event = Fast
return right(x, y, 20000)
"""
SIDE = """
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    out = right(x, y, 2000)
return out
"""
HIDDEN = """
side = torch.cuda.ExternalStream(torch.cuda.Stream().cuda_stream)
side.wait_stream(torch.cuda.current_stream())
_nothing[(1,)](x)
if x.numel() < 100000:
    return right(x, y)
out = right(x, y)
with torch.cuda.stream(side):
    torch.cuda._sleep(2000000)
return out
"""
NOTHING = "_nothing[(1,)](x)\nreturn torch.empty_like(x)"


def source(body: str) -> str:
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"{PRELUDE}\ndef add(x, y):\n{lines}\n"


@pytest.fixture(scope="module")
def watch() -> Iterator[Stopwatch]:
    if not cuda_device():
        pytest.skip("no CUDA device answers here")
    backend = open_backend("cuda")
    try:
        yield Stopwatch(Judge(backend))
    finally:
        backend.close()


TASKS = load_tasks()


@pytest.fixture(scope="module")
def plain(watch: Stopwatch) -> Speed:
    speed = watch.time(TASKS["ops/add"], source("return right(x, y)"))
    print("right", speed)
    return speed


def timed(watch: Stopwatch, body: str) -> Speed:
    speed = watch.time(TASKS["ops/add"], source(body))
    print(speed)
    return speed


def test_a_right_kernel_gets_a_time_like_eagers(plain: Speed) -> None:
    assert plain.flags == [], plain
    assert plain.floor_us is not None
    assert plain.floor_us < plain.p10_us <= plain.median_us <= plain.p90_us < 3 * plain.median_us  # type: ignore[operator]
    assert 0.5 < plain.speedup < 2.0  # type: ignore[operator]


def test_more_work_takes_longer(watch: Stopwatch, plain: Speed) -> None:
    slow = timed(watch, "return right(x, y, 2000)")
    assert slow.median_us > 3 * plain.median_us  # type: ignore[operator]
    assert "clock" not in slow.flags
    assert "unaccounted" not in slow.flags


def test_an_answer_from_cache_is_flagged(watch: Stopwatch) -> None:
    assert timed(watch, CACHED).flags


def test_patched_events_gain_nothing(watch: Stopwatch, plain: Speed) -> None:
    speed = timed(watch, EVENTS)
    assert "tampering" in speed.flags
    assert speed.median_us is None or speed.median_us > 3 * plain.median_us  # type: ignore[operator]


@pytest.mark.parametrize("body", [SIDE, HIDDEN])
def test_work_on_another_stream_is_flagged(watch: Stopwatch, body: str) -> None:
    assert {"late_write", "unaccounted"} & set(timed(watch, body).flags)


def test_a_kernel_that_does_nothing_is_under_the_floor(watch: Stopwatch) -> None:
    speed = timed(watch, NOTHING)
    assert "impossible" in speed.flags, speed
    assert len(speed.flags) > 1


@pytest.mark.parametrize("task", ["ops/softmax", "ops/matmul", "ops/attention", "ops/embedding", "ops/argmax"])
def test_right_kernels_of_other_kinds_are_not_flagged(watch: Stopwatch, task: str) -> None:
    suite, name = task.split("/")
    speed = watch.time(TASKS[task], next(kernel.source for kernel in kernels(suite, name, "control")))
    print(task, speed)
    assert (speed.flags, speed.message) == ([], "")
    assert speed.speedup
