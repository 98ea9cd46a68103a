"""Conditions compared: which model, which prompt, which feedback, which run. Per-task paired differences, their interval,
the exact sign-flip test, Holm's adjustment over the pairs of one family, ties said.

Only tasks that every condition of a family has are compared, over the tiers that all their prompts state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from operator import attrgetter
from typing import Any

from agentloop.outcomes import (
    LAST,
    ByTask,
    Episode,
    author_name,
    by_arm,
    episodes,
    first_answers,
    status_over,
    submitted,
)
from agentloop.records import Attempt
from agentloop.statistics import FEW_TASKS, averaged, holm, mean_difference, sign_flip
from oracle.schema import TIERS
from oracle.verdict import PASS

SIGNIFICANT = 0.05  # of the adjusted p; above, two conditions are not told apart
MEASURES = {"first": "solved by the first answer", "last": "solved by the last answer"}


@dataclass(frozen=True)
class Condition:
    """One thing to compare: what it is called, who answered, its episodes by task."""

    name: str
    author: str
    by_task: ByTask

    @classmethod
    def of(cls, name: str, attempts: Sequence[Attempt]) -> Condition:
        return cls(name, attempts[0].author, episodes(attempts))

    @property
    def first(self) -> Attempt:
        return next(iter(self.by_task.values()))[0][0]


def compare(axis: str, conditions: Sequence[Condition], measure: str, of: str = "") -> dict[str, Any]:
    """One family: the conditions ranked, and each pair of them. `axis` says in what they differ, `of` what they share.

    A pair's `ahead` names the condition whose lead is significant after Holm's adjustment, None where the two are not told
    apart; `tied` counts the tasks where both solve the same share.
    """
    tiers = [tier for tier in TIERS if all(tier in c.first.tiers_stated for c in conditions)]
    tasks = _common(conditions) if tiers else []
    round_ = 0 if measure == "first" else LAST

    def right(episode: Episode) -> bool:
        return status_over(submitted(episode, round_), tiers) == PASS

    solved = {c.name: {task: list(map(right, c.by_task[task])) for task in tasks} for c in conditions}
    ranking = [{"name": c.name, "author": c.author, **averaged(solved[c.name]).to_json()} for c in conditions]
    return {
        "axis": axis,
        "of": of,
        "measure": measure,
        "tiers": tiers,
        "tasks": len(tasks),
        "few_tasks": len(tasks) < FEW_TASKS,
        "tasks_left_out": len(set().union(*(c.by_task for c in conditions))) - len(tasks),
        "ranking": sorted(ranking, key=lambda row: -(row["value"] or 0.0)),
        "pairs": _pairs(solved, tasks),
    }


def _common(conditions: Iterable[Condition]) -> list[str]:
    """Tasks that all conditions have, the same in all."""
    every = [c.by_task for c in conditions]
    shared = set.intersection(*(set(by_task) for by_task in every))
    return sorted(task for task in shared if len({by_task[task][0][0].task_hash for by_task in every}) == 1)


def _pairs(solved: Mapping[str, Mapping[str, Sequence[bool]]], tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Every two conditions, the one that solves more first."""
    if not tasks:
        return []
    rows: list[dict[str, Any]] = []
    for one, two in combinations(solved, 2):
        differences: list[Fraction] = [_mean(solved[one][task]) - _mean(solved[two][task]) for task in tasks]
        if sum(differences, Fraction()) < 0:
            one, two = two, one
            differences = [-difference for difference in differences]
        rows.append(
            {
                "a": one,
                "b": two,
                "difference": mean_difference(differences).to_json(),
                "better": sum(difference > 0 for difference in differences),
                "worse": sum(difference < 0 for difference in differences),
                "tied": sum(difference == 0 for difference in differences),
                "p": sign_flip(differences),
            }
        )
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = adjusted
        row["ahead"] = row["a"] if adjusted <= SIGNIFICANT else None
    return rows


def _mean(values: Sequence[bool]) -> Fraction:
    return Fraction(sum(values), len(values))


def families(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """What one run can compare: feedback arms by their last answers; prompt strategies and models by their first answers,
    and, where the run has one arm alone, by their last."""
    arms = by_arm(attempts)
    first: dict[str, list[Attempt]] = {}
    for attempt in first_answers(attempts):
        first.setdefault(author_name(attempt), []).append(attempt)
    measured = {"first": first}
    if len({attempt.feedback for attempt in attempts}) == 1 and any(attempt.round for attempt in attempts):
        measured["last"] = arms
    found = _families("feedback", arms, "last", attrgetter("feedback"), author_name)
    for axis, shared in (("prompt_strategy", attrgetter("model")), ("model", attrgetter("prompt_strategy"))):
        for measure, conditions in measured.items():
            found += _families(axis, conditions, measure, attrgetter(axis), shared)
    return found


def _families(
    axis: str,
    conditions: Mapping[str, Sequence[Attempt]],
    measure: str,
    differs: Callable[[Attempt], str],
    shared: Callable[[Attempt], str],
) -> list[dict[str, Any]]:
    """The families of one axis: conditions alike but for it, where there are two or more."""
    alike: dict[str, list[Condition]] = {}
    for attempts in conditions.values():
        alike.setdefault(shared(attempts[0]), []).append(Condition.of(differs(attempts[0]), attempts))
    return [compare(axis, group, measure, of) for of, group in alike.items() if len(group) > 1]


def across(runs: Mapping[str, Sequence[Attempt]], measure: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Several runs compared: each condition that two runs or more have, run by run; where they share none, all their
    conditions in one family. Returns the families and the conditions left out."""
    every = {name: by_arm(attempts) for name, attempts in runs.items()}
    where: dict[str, list[str]] = {}
    for run, arms in every.items():
        for arm in arms:
            where.setdefault(arm, []).append(run)
    shared = {arm: names for arm, names in where.items() if len(names) > 1}
    if shared:
        found = [
            compare("run", [Condition.of(run, every[run][arm]) for run in names], measure, arm)
            for arm, names in shared.items()
        ]
        return found, [f"{names[0]}: {arm}" for arm, names in where.items() if arm not in shared]
    alone = all(len(arms) == 1 for arms in every.values())
    conditions = [
        Condition.of(run if alone else f"{run}: {arm}", attempts)
        for run, arms in every.items()
        for arm, attempts in arms.items()
    ]
    return [compare("run", conditions, measure)], []


def unlike(runs: Mapping[str, Sequence[Attempt]]) -> list[str]:
    """In what the judging of runs differs, one line each: such a comparison is of two things at once."""
    lines = []
    for key in ("oracle_version", "backend", "tolerance", "domain", "seed"):
        values = {name: sorted({str(getattr(a, key)) for a in attempts}) for name, attempts in runs.items()}
        if len({tuple(found) for found in values.values()}) > 1:
            lines.append(f"{key}: " + "; ".join(f"{name} {', '.join(found)}" for name, found in values.items()))
    return lines
