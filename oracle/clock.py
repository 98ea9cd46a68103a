"""Where the time of judging goes: seconds by activity, added up by the thread that spends them.

    with spending("reference"):
        ...

An activity inside another counts as itself alone. Activities: `start` (a process, until it is contained and ready),
`execute` (the candidate's own code, as its process measures it), `ship` (what else a call takes: inputs and outputs on
their way, checks around the call), `end` (killing a process), `inputs`, `reference`, `compare`, `naive` (what a profile
computes itself), `compile_gate`, `sanitizer`, `minimize` (the shrinker's own thinking), `judge` (the rest).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class _Ledger(threading.local):
    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)  # seconds by activity, others inside it left out
        self.within: defaultdict[str, float] = defaultdict(float)  # the same with all that was inside it
        self.inner: list[float] = []  # per open activity: seconds that belong to others


_ledger = _Ledger()


@contextmanager
def spending(activity: str) -> Iterator[None]:
    """Book the time of this block."""
    _ledger.inner.append(0.0)
    started = perf_counter()
    try:
        yield
    finally:
        seconds = perf_counter() - started
        own = seconds - _ledger.inner.pop()
        _ledger.within[activity] += seconds
        _book(activity, seconds, own)


def spent(activity: str, seconds: float) -> None:
    """Book seconds of the open activity as another's."""
    _ledger.within[activity] += seconds
    _book(activity, seconds, seconds)


def taken() -> tuple[dict[str, float], dict[str, float]]:
    """What this thread spent since it was last asked: by activity alone, and with what was inside each."""
    own, whole = dict(_ledger.spent), dict(_ledger.within)
    _ledger.spent.clear()
    _ledger.within.clear()
    return own, whole


def _book(activity: str, seconds: float, own: float) -> None:
    _ledger.spent[activity] += own
    if _ledger.inner:
        _ledger.inner[-1] += seconds
