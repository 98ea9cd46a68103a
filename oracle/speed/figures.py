"""What timing a candidate gives, and what is held against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from oracle.worker.protocol import Times

SLACK_US = 100.0  # a repetition may differ by so much more between the host's clock and the GPU's than eager's does,
SLACK = 0.25  # or by this share of its own time
OUR_CLOCK_US, OUR_CLOCK = 50_000.0, 0.05  # what messages may take beside the repetitions, and as a share of these


@dataclass(frozen=True)
class Speed:
    """Microseconds of one call: the median over the repetitions, its 10th and 90th percentiles, and eager PyTorch's.

    `median_us` is None where the call did not return; `speedup` is eager's median over the candidate's. `flags` say why
    the time is not to be trusted: a failure kind (the timed call failed, or its output was wrong), "impossible" (under
    `floor_us`), "unaccounted" (the host saw the device busy for longer than the caller's stream) or "clock" (the judge
    saw the process busy for longer than it says). `message` explains the first.
    """

    median_us: float | None
    p10_us: float | None
    p90_us: float | None
    eager_us: float
    eager_p10_us: float
    eager_p90_us: float
    speedup: float | None
    floor_us: float | None
    flags: list[str]
    message: str
    shape: Mapping[str, int]
    dtype: str
    repetitions: int
    gpu: str

    def to_json(self) -> dict[str, Any]:
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, 10th and 90th percentile."""
    median, low, high = np.percentile(values, (50, 10, 90))
    return float(median), float(low), float(high)


def beside(event_us: Sequence[float], host_us: Sequence[float]) -> float:
    """Median of what the host's clock saw beside the call itself."""
    return float(np.median(np.subtract(host_us, event_us)))


def suspicions(
    event_us: Sequence[float],
    host_us: Sequence[float],
    eager_beside_us: float,
    chunks: Sequence[Times],
    floor: float | None,
) -> list[tuple[str, str]]:
    """Flags of times as they were measured, each with a sentence. `event_us` and `host_us` are the counted repetitions."""
    found, median = [], float(np.median(event_us))
    if floor is not None and median < floor:
        found.append(("impossible", f"{median:.1f} µs, but its inputs and outputs alone take {floor:.1f} µs"))
    more = beside(event_us, host_us) - eager_beside_us
    if more > max(SLACK_US, SLACK * median):
        found.append(("unaccounted", f"the device is busy for {more:.0f} µs beside the caller's stream"))
    for times in chunks:
        said = sum(times.host_us)
        if times.wall_us > (1 + OUR_CLOCK) * said + OUR_CLOCK_US:
            found.append(("clock", f"repetitions of {times.wall_us:.0f} µs by our clock are {said:.0f} µs by theirs"))
            break
    return found
