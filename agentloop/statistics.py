"""Intervals and estimators of the figures that are reported. The unit of inference is the task.

Sources: Wilson (1927) score interval; Chen et al. (2021), arXiv 2107.03374, for the unbiased pass@k; Efron (1987) for BCa.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

RESAMPLES = 4000
BOOTSTRAP_SEED = 20260628
FEW_TASKS = 30  # below this many tasks a figure carries a warning


@dataclass(frozen=True)
class Estimate:
    """A share or mean with its 95% interval. `value` None where nothing was observed. `n` observations in `tasks`."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    tasks: int
    method: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "–"
        return f"{100 * self.value:.1f}% [{100 * self.low:.1f}, {100 * self.high:.1f}]"


NOTHING = Estimate(None, None, None, 0, 0, "none observed")


def wilson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion; `successes` and `n` may be fractional (an effective n).

    Raises ValueError for n ≤ 0 or successes outside [0, n].
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n and n > 0, not {successes} of {n}")
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def share(by_task: Mapping[str, Sequence[bool]]) -> Estimate:
    """Share of True over observations grouped by task: Wilson where each task has one, else BCa over tasks.

    Where all observations agree, a bootstrap would give a point: Wilson on the number of tasks then (the smallest n that
    dependence within a task can leave).
    """
    groups = [list(values) for values in by_task.values() if values]
    n = sum(map(len, groups))
    if n == 0:
        return NOTHING
    hits = sum(map(sum, groups))
    if all(len(group) == 1 for group in groups):
        return Estimate(hits / n, *wilson(hits, n), n, len(groups), "wilson")
    if hits in (0, n):
        size = len(groups)
        return Estimate(hits / n, *wilson(hits / n * size, size), n, size, "wilson over tasks")
    low, high = _ratio_interval(
        np.array([sum(group) for group in groups], float), np.array([len(group) for group in groups], float)
    )
    return Estimate(hits / n, low, high, n, len(groups), "task bootstrap (BCa)")


def mean_over_tasks(values: Sequence[float]) -> Estimate:
    """Mean of one value per task in [0, 1] (a pass@k, say): BCa over tasks, Wilson where all are 0 or all are 1."""
    n = len(values)
    if n == 0:
        return NOTHING
    mean = float(np.mean(values))
    if n == 1 or mean in (0.0, 1.0):
        return Estimate(mean, *wilson(mean * n, n), n, n, "wilson")
    low, high = _ratio_interval(np.asarray(values, float), np.ones(n))
    return Estimate(mean, low, high, n, n, "task bootstrap (BCa)")


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Unbiased pass@k of one task: 1 − C(n−c, k)/C(n, k); None where n < k."""
    if k < 1 or not 0 <= correct <= n:
        raise ValueError(f"pass@k needs k >= 1 and 0 <= correct <= n, not k={k}, {correct} of {n}")
    if n < k:
        return None
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def _ratio_interval(numerators: np.ndarray, denominators: np.ndarray) -> tuple[float, float]:
    """95% BCa interval of Σnumerators / Σdenominators, resampling tasks together with a fixed seed."""

    def ratio(top: np.ndarray, bottom: np.ndarray, axis: int = -1) -> np.ndarray:
        return top.sum(axis=axis) / bottom.sum(axis=axis)

    size = numerators.size
    if size < 2 or np.ptp(numerators / denominators) == 0:
        value = float(ratio(numerators, denominators))
        return wilson(value * size, size)
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # answered below
        result = stats.bootstrap(
            (numerators, denominators),
            ratio,
            paired=True,
            vectorized=True,
            n_resamples=RESAMPLES,
            method="BCa",
            rng=np.random.default_rng(BOOTSTRAP_SEED),
        )
    low, high = float(result.confidence_interval.low), float(result.confidence_interval.high)
    if math.isnan(low) or math.isnan(high):
        value = float(ratio(numerators, denominators))
        return wilson(value * size, size)
    return low, high
