"""Kernels under the seven published fuzz strategies, judged by every tolerance policy on the same outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from oracle.compare import compare
from oracle.corpus import BUG, Kernel
from oracle.corpus.exact import shows
from oracle.errors import UsageError
from oracle.runner import Trial
from oracle.schema import Task
from oracle.strategies import ONLY, STRATEGIES, published_cases
from oracle.tolerance import RULES, Policy, from_figures, policy
from oracle.validation.bench import Bench, Job
from oracle.validation.verdicts import about

PART = "strategies"
DTYPES = ("float32", "float16")  # of the published schema
SEED = 0

Figures = Mapping[str, Mapping[str, float]]  # calibrated absolute tolerance by task and dtype


def jobs(kernels: Iterable[Kernel], count: int, calibrated: Figures) -> list[Job]:
    """One job per kernel, strategy and dtype that the strategy has: `count` cases each."""
    return [
        Job(
            PART,
            f"{kernel.suite}/{kernel.name} {strategy} {dtype}",
            partial(_measured, kernel, strategy, dtype, count, calibrated),
        )
        for kernel in kernels
        for strategy in STRATEGIES
        for dtype in DTYPES
        if ONLY.get(strategy, dtype) == dtype
    ]


def _measured(
    kernel: Kernel, strategy: str, dtype: str, count: int, calibrated: Figures, bench: Bench
) -> dict[str, Any]:
    """One letter per case, "1" or "0": whether it shows the bug (of right kernels none does), and whether each policy
    flags the kernel."""
    task = bench.tasks[kernel.task]
    policies = _policies(bench.backend.name, calibrated)
    showing, flagged = "", dict.fromkeys(policies, "")
    with bench.runner(task.id, kernel.source) as runner:
        for case in published_cases(task, strategy, SEED, count, dtype):
            trial = runner.run(case)
            showing += _bit(kernel.label == BUG and shows(kernel.name, trial.inputs, trial.expected))
            for name, rule in policies.items():
                flagged[name] += _bit(_flags(trial, rule, task))
    return {**about(kernel), "strategy": strategy, "dtype": dtype, "showing": showing, "flagged": flagged}


def _policies(backend: str, calibrated: Figures) -> dict[str, Policy]:
    measured = Policy("calibrated", backend, from_figures(calibrated))
    return {name: measured if name == "calibrated" else policy(name, backend) for name in RULES}


def _flags(trial: Trial, rule: Policy, task: Task) -> bool:
    """What fails whatever the tolerance (a call that raised, a write outside), or a value beyond this policy's."""
    if trial.comparison is None:
        return trial.failure is not None
    if trial.failure is not None and trial.comparison.kind is None:
        return True
    try:
        return compare(trial.expected, trial.outcome, task, trial.inputs, rule).kind is not None
    except UsageError:  # the policy has no figure for this operator and dtype
        return False


def _bit(value: bool) -> str:
    return "1" if value else "0"
