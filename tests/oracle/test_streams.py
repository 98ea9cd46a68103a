"""When a side stream is kept waiting, and what counts as a launch; on a GPU, `tests/oracle/attacks/streams.py`."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from oracle.interpreter.state import current
from oracle.worker import cuda_launches
from oracle.worker import streams as module
from oracle.worker.streams import DELAY, LEAST, SECONDS, Streams

CALLER, SIDE, OTHER = 0, 0x7000, 0x8000


class Gpu:
    """Stands in for torch: `waits` are (stream, seconds); `done` tells which streams have ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stream, self.clock, self.captured = CALLER, 0.0, False
        self.waits: list[tuple[int, float]] = []
        self.done: set[int] = set()
        fakes = {
            "_now": lambda: self.clock,
            "_sleep": lambda seconds: None,
            "_gpu": lambda: True,
            "_device": lambda: 0,
            "_raw": lambda device: self.stream,
            "_External": lambda stream: stream,
            "_current_stream": lambda: self.stream,
            "_default_stream": lambda: CALLER,
            "_set_stream": lambda stream: setattr(self, "stream", stream),
            "_is_capturing": lambda: self.captured,
            "_device_waits": lambda cycles: self.waits.append((self.stream, cycles / module.CYCLES)),
            "_Event": lambda: SimpleNamespace(stream=None),
            "_record": lambda event, stream: setattr(event, "stream", stream),
            "_wait": lambda event: None,
            "_query": lambda event: event.stream in self.done,
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(module, name, fake)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    current.restart()
    yield Gpu(monkeypatch)
    current.restart()


def test_the_callers_stream_is_never_kept_waiting(gpu: Gpu):
    streams = Streams()
    streams.operates()
    streams.delay(CALLER)
    streams.launched(CALLER)
    assert not gpu.waits
    assert not streams.unwaited()


def test_a_side_stream_waits_before_each_launch_and_long_once_half_of_that_has_passed(gpu: Gpu):
    streams = Streams()
    for gpu.clock in (0.0, 0.4 * DELAY, 0.6 * DELAY):
        streams.delay(SIDE)
    streams.delay(OTHER)
    assert gpu.waits == [(SIDE, DELAY), (SIDE, LEAST), (SIDE, DELAY), (OTHER, DELAY)]
    assert gpu.stream == CALLER


def test_the_waiting_of_one_call_is_limited(gpu: Gpu):
    streams = Streams()
    for second in range(100):
        gpu.clock = float(second)
        streams.delay(SIDE)
    assert gpu.waits[-1] == (SIDE, LEAST)
    assert sum(seconds for _, seconds in gpu.waits) < SECONDS + DELAY + 100 * LEAST
    streams.restart()
    streams.delay(SIDE)
    assert gpu.waits[-1] == (SIDE, DELAY)


def test_operations_keep_the_current_stream_waiting_unless_it_waits(gpu: Gpu):
    gpu.stream = SIDE
    streams = Streams()
    for gpu.clock in (0.0, 0.4 * DELAY, 0.6 * DELAY):
        streams.operates()
    assert gpu.waits == [(SIDE, DELAY)] * 2


def test_a_launch_that_is_not_done_when_the_callers_stream_ends_was_not_waited_for(gpu: Gpu):
    streams = Streams()
    streams.launched(SIDE)
    streams.launched(OTHER)
    gpu.done = {SIDE}
    assert streams.unwaited()
    gpu.done = {SIDE, OTHER}
    assert not streams.unwaited()


def test_nothing_waits_where_a_graph_is_captured_or_the_call_is_timed(gpu: Gpu):
    streams = Streams()
    gpu.captured = True
    streams.delay(SIDE)
    gpu.captured, current.timed = False, True
    streams.delay(SIDE)
    streams.launched(SIDE)
    assert not gpu.waits
    assert not streams.unwaited()


def test_a_launch_counts_once_it_is_made_and_not_while_a_graph_is_captured(gpu: Gpu):
    made = []
    launch = cuda_launches._counted(lambda self, *args: made.append(args))
    launch(None, 1, 1, 1, SIDE, "function")
    assert (current.launches, gpu.waits) == (1, [(SIDE, DELAY)])
    gpu.captured = True
    launch(None, 1, 1, 1, SIDE, "function")
    assert (current.launches, len(made)) == (1, 2)
    gpu.captured, gpu.stream = False, SIDE
    cuda_launches._replayed(lambda self: None)(None)
    assert current.launches == 2
