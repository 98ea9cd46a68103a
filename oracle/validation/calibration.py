"""How far right kernels are from the reference: the published calibration, done on our own controls.

Published (P2): tolerance = 95th percentile of the largest absolute errors of passing cases × 1.5, per operator and dtype.
Here the cases are the published strategy `default` where a task has a published schema, and the core domain of the default
portfolio (uniform values, other sizes and dtypes), on seeds that no other part uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from oracle.corpus import Kernel
from oracle.portfolio import portfolio
from oracle.runner import Trial
from oracle.strategies import published_cases
from oracle.tolerance import calibrate
from oracle.validation.bench import Bench, Job
from oracle.validation.verdicts import about

PART = "calibration"
SEEDS = (9001, 9002)
PUBLISHED = 50  # cases of strategy `default` per dtype


def jobs(kernels: Iterable[Kernel]) -> list[Job]:
    """One job per right kernel."""
    return [Job(PART, f"{kernel.suite}/{kernel.name}", partial(_errors, kernel)) for kernel in kernels]


def _errors(kernel: Kernel, bench: Bench) -> dict[str, Any]:
    """The largest absolute error of each passing case, by dtype."""
    task = bench.tasks[kernel.task]
    cases = [case for seed in SEEDS for case in portfolio(task, domain="core", seed=seed, stream=PART)]
    if task.published is not None:
        cases += [
            case for dtype in task.published.dtypes for case in published_cases(task, "default", 9001, PUBLISHED, dtype)
        ]
    found: dict[str, list[float]] = defaultdict(list)
    with bench.runner(task.id, kernel.source) as runner:
        for case in cases:
            trial = runner.run(case)
            error = _largest(trial)
            if error is not None:
                found[case.dtype].append(error)
    return {**about(kernel), "errors": dict(found)}


def _largest(trial: Trial) -> float | None:
    if trial.failure is not None or trial.comparison is None:
        return None
    return trial.comparison.stats.get("max_abs")


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The calibration (see `oracle.tolerance.calibrate`) from this part's records."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        for dtype, values in record["errors"].items():
            errors[record["task"], dtype] += values
    return calibrate(errors)
