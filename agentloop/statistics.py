"""Intervals, estimators and tests of the figures that are reported. The unit of inference is the task.

Every interval is nominally 95%; how often it holds the truth was measured (`benchmarks/coverage.py` prints the table).

Sources: Wilson (1927), the score interval; Efron (1987), BCa; Hesterberg (2015, The American Statistician 69), percentiles
expanded by Student's t; Agresti and Min (2005, Biostatistics 6), pseudo-observations for paired differences; Chen et al.
(2021, arXiv 2107.03374), unbiased pass@k; Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

RESAMPLES = 4000
BOOTSTRAP_SEED = 20260628
FEW_TASKS = 30  # below this many tasks a figure carries a warning
TAIL = 0.025  # of each side of an interval
Z = float(special.ndtri(1 - TAIL))
ENOUGH = 5.0  # expected tasks on the rarer side from which the bootstrap's distribution is of use
EXACT_STEPS = 200_000_000  # additions that an exact permutation test may take; beyond, random sign flips
FLIPS = 100_000


@dataclass(frozen=True)
class Estimate:
    """A share, mean or difference with its 95% interval. `value` None where nothing was observed or it is undefined;
    `method` says why. `n` observations in `tasks` tasks."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    tasks: int
    method: str

    @property
    def few_tasks(self) -> bool:
        """Whether the interval is wide for want of tasks and rests on approximations."""
        return self.value is not None and self.tasks < FEW_TASKS

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"few_tasks": self.few_tasks}

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "–"
        return f"{100 * self.value:.1f}% [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def undefined(why: str) -> Estimate:
    return Estimate(None, None, None, 0, 0, why)


NOTHING = undefined("none observed")


def wilson(successes: float, n: float, z: float = Z) -> tuple[float, float]:
    """Wilson score interval of a proportion; `successes` and `n` may be fractional (an effective n), `z` is the quantile.

    Raises ValueError for n ≤ 0 or successes outside [0, n].
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n and n > 0, not {successes} of {n}")
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def share(by_task: Mapping[str, Sequence[bool]]) -> Estimate:
    """Share of True over observations grouped by task: Wilson where each task has one, else bootstrapped over tasks."""
    groups = [values for values in by_task.values() if values]
    return _over_tasks(np.array([sum(group) for group in groups], float), np.array([len(group) for group in groups]))


def averaged(by_task: Mapping[str, Sequence[bool]]) -> Estimate:
    """The same with every task of equal weight, however many observations it has: samples are averaged within."""
    groups = [values for values in by_task.values() if values]
    estimate = mean_over_tasks([sum(group) / len(group) for group in groups])
    return replace(estimate, n=sum(map(len, groups)))


def mean_over_tasks(values: Sequence[float]) -> Estimate:
    """Mean of one value per task in [0, 1] (a pass@k, say)."""
    return _over_tasks(np.asarray(values, float), np.ones(len(values), int))


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Unbiased pass@k of one task: 1 − C(n−c, k)/C(n, k); None where n < k."""
    if k < 1 or not 0 <= correct <= n:
        raise ValueError(f"pass@k needs k >= 1 and 0 <= correct <= n, not k={k}, {correct} of {n}")
    if n < k:
        return None
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def _over_tasks(hits: np.ndarray, counts: np.ndarray) -> Estimate:
    """Σhits / Σcounts with its interval; one element a task, hits within [0, counts].

    One yes or no a task: Wilson. Else the task bootstrap, where at least `ENOUGH` tasks' worth lie on either side of the
    share (fewer leave its distribution too lumpy: 89% coverage was measured), else Wilson on an effective n.
    """
    tasks, n = int(hits.size), int(counts.sum())
    if n == 0:
        return NOTHING
    value = float(hits.sum()) / n
    if (counts == 1).all() and np.isin(hits, (0, 1)).all():
        (low, high), method = wilson(float(hits.sum()), n), "wilson"
    elif tasks * min(value, 1 - value) >= ENOUGH and np.ptp(hits / counts) > 0:
        (low, high), method = bca(hits, counts, expanded_tail(tasks)), "task bootstrap (BCa, expanded)"
    else:
        (low, high), method = effective_wilson(hits, counts), "wilson over effective tasks"
    return Estimate(value, low, high, n, tasks, method)


def expanded_tail(tasks: int) -> float:
    """The tail to read a bootstrap's percentiles at, so that the interval is as wide as Student's t makes it."""
    return float(special.ndtr(math.sqrt(tasks / (tasks - 1)) * special.stdtrit(tasks - 1, TAIL)))


def bca(hits: np.ndarray, counts: np.ndarray, tail: float = TAIL) -> tuple[float, float]:
    """BCa interval of Σhits / Σcounts, resampling tasks with a fixed seed. The shares of the tasks must not all agree."""
    value = hits.sum() / counts.sum()
    resampled = _resamples(hits.size)
    found = np.sort((resampled @ hits) / (resampled @ counts))
    below = (np.searchsorted(found, value, "left") + np.searchsorted(found, value, "right")) / (2 * RESAMPLES)
    bias = special.ndtri(below)
    without = (hits.sum() - hits) / (counts.sum() - counts)
    spread = without.mean() - without
    acceleration = (spread**3).sum() / (6 * (spread**2).sum() ** 1.5)
    places = bias + special.ndtri([tail, 1 - tail])
    low, high = np.quantile(found, special.ndtr(bias + places / (1 - acceleration * places)))
    return float(low), float(high)


@lru_cache(maxsize=16)
def _resamples(tasks: int) -> np.ndarray:
    """How often each task is drawn in each resample: RESAMPLES × tasks."""
    drawn = np.random.default_rng(BOOTSTRAP_SEED).multinomial(tasks, np.full(tasks, 1 / tasks), size=RESAMPLES)
    return drawn.astype(float)


def effective_wilson(hits: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Wilson on the number of independent yes-or-no tasks that would be as uncertain as these.

    The variance between tasks is estimated with two pseudo-tasks, one all True and one all False: where nearly all tasks
    agree, their own variance says too little. The quantile is Student's.
    """
    tasks, size = hits.size, counts.mean()
    hits, counts = np.append(hits, (0, size)), np.append(counts, (size, size))
    p = hits.sum() / counts.sum()
    variance = (tasks + 2) / (tasks + 1) * ((hits - p * counts) ** 2).sum() / counts.sum() ** 2
    effective = p * (1 - p) / variance * tasks / (tasks + 2)
    value = hits[:-2].sum() / counts[:-2].sum()
    return wilson(float(value * effective), float(effective), float(special.stdtrit(tasks + 1, 1 - TAIL)))


def mean_difference(differences: Sequence[Fraction] | Sequence[float]) -> Estimate:
    """Mean of one paired difference per task in [−1, 1].

    Student's t; the variance is estimated with two pseudo-tasks (half a +1, half a −1, one 0), without which differences
    that are mostly 0 seem far too certain: 75% coverage was measured with 15 tasks.
    """
    n = len(differences)
    if n == 0:
        return NOTHING
    values = np.array([float(difference) for difference in differences])
    mean = float(values.mean())
    variance = ((values**2).sum() + 1) / (n + 2) - (values.sum() / (n + 2)) ** 2
    half = float(special.stdtrit(n + 1, 1 - TAIL)) * math.sqrt(variance / n)
    return Estimate(mean, max(-1.0, mean - half), min(1.0, mean + half), n, n, "paired t with pseudo-tasks")


def sign_flip(differences: Sequence[Fraction]) -> float:
    """Two-sided p of the paired permutation test: how often the sum of the differences, each with a random sign, is at
    least as far from 0. Exact, by the distribution of the sum; with one sample a task this is the exact McNemar test.

    Differences whose common denominator makes that too large are answered by `FLIPS` random flips with a fixed seed.
    """
    scale = math.lcm(*(difference.denominator for difference in differences))
    steps = [abs(int(difference * scale)) for difference in differences if difference]
    observed, reach = abs(int(sum(differences, Fraction()) * scale)), sum(steps)
    if len(steps) * reach > EXACT_STEPS:
        signs = np.random.default_rng(BOOTSTRAP_SEED).choice((-1.0, 1.0), size=(FLIPS, len(steps)))
        return float(1 + np.count_nonzero(np.abs(signs @ np.array(steps, float)) >= observed - 0.5)) / (FLIPS + 1)
    chance = np.zeros(2 * reach + 1)  # of each sum from −reach to reach
    chance[reach] = 1.0
    for step in steps:
        chance = (np.roll(chance, step) + np.roll(chance, -step)) / 2
    far = np.abs(np.arange(-reach, reach + 1)) >= observed
    return min(1.0, float(chance[far].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for being several, in the order given: the chance of any false finding is kept (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = worst
    return adjusted
