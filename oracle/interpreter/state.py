"""What one call of the candidate is run with, and what was noticed during it. One process runs one call at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class CallState:
    """`reverse`, `poison`, `fill_lanes`: see `oracle.worker.protocol.Call`. `config` picks an autotune configuration
    unless the call is `timed`; `configs` is the largest number of configurations that an autotuned kernel chose from.
    `depth` is the number of launches being interpreted right now (0 or 1). `watched`: every tensor operation is looked at
    (`oracle.interpreter.host_compute`). `held`: copies of what launches could read (`oracle.worker.held`), where they are
    wanted."""

    reverse: bool = False
    poison: int = 0
    fill_lanes: bool = False
    config: int = 0
    timed: bool = False
    configs: int = 1
    launches: int = 0
    depth: int = 0
    unsupported: str | None = None
    findings: list[tuple[str, str]] = field(default_factory=list)
    watched: bool = False
    held: Any = None

    def find(self, kind: str, message: str) -> None:
        """Note a finding once, however often it recurs."""
        if (kind, message) not in self.findings:
            self.findings.append((kind, message))

    def hold(self) -> None:
        """A launch begins, or the call ends: look at what memory holds, where that is wanted."""
        if self.held is not None:
            self.held.look()

    def restart(self, **settings: Any) -> None:
        """A new call: forget what the last one left, take these settings and defaults for the rest."""
        fresh = CallState(**settings)
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))


current = CallState()
