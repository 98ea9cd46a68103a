"""How far a machine was left alone while it was measured."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # idle, waiting for the disk: columns of the line `cpu` in /proc/stat


class Others:
    """Counts from its making on. Only children that have ended and were waited for count as our own."""

    def __init__(self) -> None:
        self._begun, self._busy, self._own = time.monotonic(), _busy(), _own()

    def share(self) -> float:
        """Percent of all processors' time that other programs, or other machines on the same host, have taken."""
        available = (time.monotonic() - self._begun) * (os.cpu_count() or 1)
        return max(0.0, 100 * (_busy() - self._busy - (_own() - self._own)) / available)


def _busy() -> float:
    """Seconds that the processors of this machine were not idle, since it started."""
    columns = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks for column, ticks in enumerate(columns) if column not in _IDLE) / _TICKS


def _own() -> float:
    """Processor seconds of this process and of its children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
