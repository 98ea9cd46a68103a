"""How often the reported 95% intervals hold the truth, by simulation; and how often the paired test finds what is not there.

    python benchmarks/coverage.py                        (the table: about a quarter of an hour on one core)
    python benchmarks/coverage.py --datasets 100         (the same, coarser: one minute)

Each setting draws data sets of a known truth: the chance to solve a task differs from task to task (a Beta distribution of
mean `mean`; `alike` is the correlation of two samples of one task, 1: a task is solved always or never), samples of a task
are independent given its chance. What is measured are the functions that reports use. One sample a task needs no simulation:
its coverage is a binomial sum.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from agentloop.statistics import Estimate, mean_difference, mean_over_tasks, pass_at_k, share, sign_flip, wilson  # noqa: E402

TASKS = (15, 45, 200)
MEANS = (0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
ALIKE = (0.1, 0.3, 0.5, 0.9, 1.0)
SAMPLES = ((2, 2), (5, 5), (10, 10), (1, 5))  # fewest and most samples of a task
SHIFT = 0.7  # correlation of two arms' chances over tasks
PAIRS = ((0.05, 0.05), (0.5, 0.5), (0.9, 0.9), (0.1, 0.3), (0.5, 0.7), (0.3, 0.8), (0.9, 0.97), (0.02, 0.2))


@dataclass(frozen=True)
class Setting:
    """A truth and how to draw one interval for it."""

    name: str
    truth: float
    draw: Callable[[np.random.Generator], Estimate]


@dataclass(frozen=True)
class Measured:
    setting: str
    coverage: float
    width: float


def chances(
    rng: np.random.Generator, tasks: int, mean: float, alike: float, scores: np.ndarray | None = None
) -> np.ndarray:
    """Each task's chance to be solved; `scores` (standard normal) ties the chances of two arms together."""
    ranks = rng.random(tasks) if scores is None else stats.norm.cdf(scores)
    if alike >= 1:
        return (ranks > 1 - mean).astype(float)
    weight = (1 - alike) / alike
    return stats.beta.ppf(ranks, mean * weight, (1 - mean) * weight)


def share_settings(tasks: int) -> Iterator[Setting]:
    """The share over all samples, several a task."""
    for mean in MEANS:
        for alike in ALIKE:
            for fewest, most in SAMPLES:

                def draw(rng: np.random.Generator, m: float = mean, a: float = alike, s=(fewest, most)) -> Estimate:
                    counts = rng.integers(s[0], s[1] + 1, tasks)
                    solved = rng.binomial(counts, chances(rng, tasks, m, a))
                    return share({str(t): [i < solved[t] for i in range(counts[t])] for t in range(tasks)})

                yield Setting(f"mean {mean}, alike {alike}, {fewest} to {most} samples", mean, draw)


def pass_settings(tasks: int) -> Iterator[Setting]:
    """pass@k of k of n samples."""
    for n, k in ((5, 2), (10, 5)):
        for mean in MEANS:
            for alike in ALIKE[:-1]:
                weight = (1 - alike) / alike
                none = stats.betabinom.pmf(0, k, mean * weight, (1 - mean) * weight)

                def draw(
                    rng: np.random.Generator, m: float = mean, a: float = alike, n: int = n, k: int = k
                ) -> Estimate:
                    solved = rng.binomial(n, chances(rng, tasks, m, a))
                    return mean_over_tasks([pass_at_k(n, int(c), k) or 0.0 for c in solved])

                yield Setting(f"pass@{k} of {n}, mean {mean}, alike {alike}", 1 - float(none), draw)


def paired(rng: np.random.Generator, tasks: int, means: tuple[float, float], alike: float, n: int) -> list[Fraction]:
    """Per-task differences between two arms of `n` samples."""
    common = rng.standard_normal(tasks)
    own = [np.sqrt(SHIFT) * common + np.sqrt(1 - SHIFT) * rng.standard_normal(tasks) for _ in means]
    first, second = (rng.binomial(n, chances(rng, tasks, m, alike, z)) for m, z in zip(means, own, strict=True))
    return [Fraction(int(a - b), n) for a, b in zip(first, second, strict=True)]


def difference_settings(tasks: int) -> Iterator[Setting]:
    """Paired differences of two arms."""
    for means in PAIRS:
        for alike in ALIKE:
            for n in (1, 2, 5):

                def draw(rng: np.random.Generator, m=means, a: float = alike, n: int = n) -> Estimate:
                    return mean_difference(paired(rng, tasks, m, a, n))

                yield Setting(f"means {means[0]} and {means[1]}, alike {alike}, {n} samples", means[0] - means[1], draw)


def measure(setting: Setting, datasets: int) -> Measured:
    """Share of data sets whose interval holds the truth, and the mean width. The same again each time."""
    rng = np.random.default_rng(zlib.crc32(setting.name.encode()))
    found = [setting.draw(rng) for _ in range(datasets)]
    low, high = np.array([f.low for f in found], float), np.array([f.high for f in found], float)
    held = (low <= setting.truth + 1e-12) & (setting.truth - 1e-12 <= high)
    return Measured(setting.name, float(held.mean()), float((high - low).mean()))


def one_sample(tasks: int) -> list[Measured]:
    """Wilson's exact coverage with one sample a task."""
    counts = np.arange(tasks + 1)
    bounds = np.array([wilson(int(c), tasks) for c in counts])
    rows = []
    for mean in MEANS:
        chance = stats.binom.pmf(counts, tasks, mean)
        held = (bounds[:, 0] <= mean) & (mean <= bounds[:, 1])
        width = float((chance * (bounds[:, 1] - bounds[:, 0])).sum())
        rows.append(Measured(f"mean {mean}", float(chance[held].sum()), width))
    return rows


def false_findings(tasks: int, datasets: int) -> list[Measured]:
    """How often p <= 0.05 where both arms are equal: at most 5% is promised. (`coverage` holds the share not found.)"""
    rows = []
    for mean in (0.1, 0.5, 0.9):
        for n in (1, 3):
            rng = np.random.default_rng(2)
            found = sum(sign_flip(paired(rng, tasks, (mean, mean), 0.5, n)) <= 0.05 for _ in range(datasets))
            rows.append(Measured(f"means {mean}, {n} samples", 1 - found / datasets, 0.0))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000, help="data sets of each setting")
    datasets = parser.parse_args().datasets
    figures: dict[str, Callable[[int], list[Measured]]] = {
        "share, one sample a task": one_sample,
        "share, several samples": lambda tasks: [measure(s, datasets) for s in share_settings(tasks)],
        "pass@k": lambda tasks: [measure(s, datasets) for s in pass_settings(tasks)],
        "paired difference": lambda tasks: [measure(s, datasets) for s in difference_settings(tasks)],
        "no false finding (p > 0.05)": lambda tasks: false_findings(tasks, datasets),
    }
    print(f"| figure | tasks | settings | coverage, mean | least | width, mean | where it is least |\n|{'---|' * 7}")
    for name, measured in figures.items():
        for tasks in TASKS:
            rows = measured(tasks)
            least = min(rows, key=lambda row: row.coverage)
            mean, width = (np.mean([getattr(row, key) for row in rows]) for key in ("coverage", "width"))
            print(
                f"| {name} | {tasks} | {len(rows)} | {mean:.1%} | {least.coverage:.1%} | {width:.3f} | {least.setting} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
