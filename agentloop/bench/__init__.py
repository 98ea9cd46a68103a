"""Measurements of this project's own speed, as ratios taken in one run on one machine (`agentloop bench`).

Each part returns figures; a figure may have a target. Times on a shared machine are noisy: what is compared is taken in
turns, several times over, and the middle value counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One measured number. `unit` is "s", "ms", "MiB", "%", "x" or "/min"; `target` the number it should reach, from
    below (`at_most`) or from above; `note` says over what it was taken."""

    part: str
    name: str
    value: float
    unit: str
    target: float | None = None
    at_most: bool = True
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


def middle(values: Iterable[float]) -> float:
    """The median; 0 of nothing."""
    found: Sequence[float] = list(values)
    return median(found) if found else 0.0
