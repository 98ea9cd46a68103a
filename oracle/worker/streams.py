"""Whether the caller's stream waits for what a candidate does on other streams, told by what happens, not by what it calls.

A side stream is kept waiting before it is given work. Whoever waits for that work, by whatever means, has it a little
later; whoever does not returns before it is done. Then the last kernel launched on a side stream is still under way when
the caller's stream has come to its end; and what other operations write there changes an output afterwards
(`oracle.worker.child`). A timed call is left alone.

Everything used here was fetched before the candidate's code ran.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from oracle.interpreter.state import current

CYCLES = 2_000_000_000  # of a fast GPU's clock in a second; a slower one waits longer
DELAY = 0.04  # seconds that a side stream is kept waiting
LEAST = 0.002  # the same before a launch while it still waits, and once the seconds of the call are spent
SECONDS = 0.4  # of one call
GRACE = 0.0005  # seconds from the end of a kernel, which a candidate may see in memory, to that of its event

_LEGACY = (0, 1)  # handles of the default stream, the caller's: side streams that block order themselves after it


def _absent(*_: Any) -> Any:
    raise RuntimeError("this torch has no CUDA")


_now, _sleep = time.perf_counter, time.sleep
_Event: Any = torch._C._CudaEventBase
_record, _query, _wait = (getattr(_Event, name, _absent) for name in ("record", "query", "synchronize"))
_device_waits, _raw = (getattr(torch._C, name, _absent) for name in ("_cuda_sleep", "_cuda_getCurrentRawStream"))
_External, _default_stream = torch.cuda.ExternalStream, torch.cuda.default_stream
_current_stream, _set_stream = torch.cuda.current_stream, torch.cuda.set_stream
_gpu, _device, _is_capturing = (
    torch.cuda.is_initialized,
    torch.cuda.current_device,
    torch.cuda.is_current_stream_capturing,
)


class Streams:
    """Of one call. Streams are known by their raw handles."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._left = SECONDS
        self._waits: dict[int, float] = {}  # until when a stream surely still waits, long enough
        self._launched: dict[int, Any] = {}  # an event after a stream's last launch

    def operates(self) -> None:
        """A torch operation begins, on the current stream."""
        if _gpu() and not self._still_waits(stream := raw_stream()):
            self.delay(stream)

    def delay(self, stream: int) -> None:
        """Before work is given to a stream. A launch is held up even where the stream waits already: the work before it may
        have been waited for."""
        if stream in _LEGACY or current.timed:
            return
        now = _now()
        seconds = DELAY if self._left > 0 and not self._still_waits(stream) else LEAST
        with suppress(Exception), _on(stream):
            if not _is_capturing():
                _device_waits(round(seconds * CYCLES))
                self._left -= seconds
                self._waits[stream] = max(self._waits.get(stream, 0.0), now + seconds / 2)

    def _still_waits(self, stream: int) -> bool:
        return _now() < self._waits.get(stream, 0.0)

    def launched(self, stream: int) -> None:
        """After a launch, which is not captured."""
        if stream in _LEGACY or current.timed:
            return
        with suppress(Exception):
            event = self._launched.setdefault(stream, _Event())
            _record(event, _External(stream))

    def unwaited(self) -> bool:
        """As the call returns: whether the caller's stream ends before what was launched on another."""
        if self._launched:
            with suppress(Exception):  # a device that is lost shows when all of it is waited for
                end = _Event()
                _record(end, _default_stream())
                _wait(end)
                _sleep(GRACE)
                return not all(map(_query, self._launched.values()))
        return False


streams = Streams()


def raw_stream() -> int:
    return _raw(_device())


def capturing(stream: int) -> bool:
    """Whether what is launched on the stream becomes part of a graph and does not run now."""
    if stream not in _LEGACY:
        with suppress(Exception), _on(stream):
            return _is_capturing()
    return False


@contextmanager
def _on(stream: int) -> Iterator[None]:
    """With that stream as the current one."""
    if stream == raw_stream():
        yield
        return
    before = _current_stream()
    _set_stream(_External(stream))
    try:
        yield
    finally:
        _set_stream(before)
