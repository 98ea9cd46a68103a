"""What one call of the candidate is run with, and what was noticed during it. One process runs one call at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class CallState:
    """`reverse`, `poison`, `fill_lanes`: see `oracle.worker.protocol.Call`. `config` picks an autotune configuration
    unless the call is `timed`;
    `configs` is the largest number of configurations that an autotuned kernel chose from. `depth` is the number of
    launches being interpreted right now (0 or 1)."""

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

    def find(self, kind: str, message: str) -> None:
        """Note a finding once, however often it recurs."""
        if (kind, message) not in self.findings:
            self.findings.append((kind, message))

    def restart(self, **settings: Any) -> None:
        """A new call: forget what the last one left, take these settings and defaults for the rest."""
        vars(self).update(vars(CallState(**settings)))


current = CallState()
