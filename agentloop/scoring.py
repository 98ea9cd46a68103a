"""From attempts to figures: one dictionary, written as `summary.json` and drawn by every report.

Disagreement is counted on round 0 only. Oracle statuses are recomputed from each attempt's tiers, so that every figure
can be given over the tiers that the prompt stated (the headline), the core domain and the full domain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentloop.comparison import families
from agentloop.errors import UsageError
from agentloop.files import read_lines
from agentloop.outcomes import (
    LAST,
    arm_name,
    author_name,
    episodes,
    first_answers,
    loud_over,
    status_over,
    submitted,
    tier_sets,
)
from agentloop.records import Attempt, attempts_of
from agentloop.repairs import repair
from agentloop.speeds import load_speeds, speed_figures
from agentloop.statistics import FEW_TASKS, Estimate, mean_over_tasks, pass_at_k, share, undefined
from agentloop.store import read_config
from oracle.schema import TIERS
from oracle.verdict import FAIL, PASS, UNJUDGED

SUMMARY_VERSION = 2
SIMULATED = ("offline",)
PASS_AT = (1, 2, 5, 10)


def load_records(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's attempts.jsonl, a torn last one left out. Raises UsageError for no such run."""
    path = run / "attempts.jsonl"
    if not path.is_file():
        raise UsageError(f"{run} is not a run folder: it has no attempts.jsonl")
    return read_lines(path)[0]


def load_attempts(run: Path) -> list[Attempt]:
    """Attempts of a run folder in the order recorded. Raises UsageError for no such run or a line of another version."""
    return list(attempts_of(run / "attempts.jsonl", load_records(run)).values())


def summarize(run: Path) -> dict[str, Any]:
    """All figures of a run, as JSON values; see the functions below for each part."""
    attempts, speeds = load_attempts(run), load_speeds(run)
    begun = len({attempt.episode_id for attempt in attempts})
    groups: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in first_answers(attempts):
        groups[author_name(attempt)].append(attempt)
    return {
        "version": SUMMARY_VERSION,
        "run": run.name,
        "simulation": any(attempt.author in SIMULATED for attempt in attempts),
        "attempts": len(attempts),
        "episodes": {"begun": begun, "planned": max(begun, read_config(run).get("episodes") or 0)},
        "unjudged": sum(attempt.status == UNJUDGED for attempt in attempts),
        "requests": request_figures(run),
        "models": {
            name: {
                "author": group[0].author,
                "tasks": len({attempt.task for attempt in group}),
                "few_tasks": len({attempt.task for attempt in group}) < FEW_TASKS,
                "tiers_stated": group[0].tiers_stated,
                "domain": group[0].domain,
                "backend": group[0].backend,
                "disagreement": disagreement(group),
                "tiers": tier_counts(group),
                "failure_kinds": failure_kinds(group),
                "ability": ability(group),
                "speed": speed_figures(group, speeds),
                "sanitizer": sanitizer_figures(group),
            }
            for name, group in sorted(groups.items())
        },
        "repair": repair(attempts),
        "comparison": families(attempts),
        "tasks": task_table(attempts),
    }


def disagreement(first: Sequence[Attempt]) -> dict[str, dict[str, Any]]:
    """Per naive profile and tier set: the 2×2, P(oracle fails | naive passes) with its interval, silent apart from loud.

    Unjudged attempts stand outside the 2×2; `if_unjudged_pass` and `if_unjudged_fail` bound the share with them.
    """
    profiles = {profile for attempt in first for profile in attempt.naive}
    sets = tier_sets(first[0])
    return {
        profile: {name: _two_by_two(first, profile, name) for name in sets}
        for profile in sorted(profiles, key=_profile_order)
    }


def _two_by_two(first: Sequence[Attempt], profile: str, tier_set: str) -> dict[str, Any]:
    cells: Counter[str] = Counter()
    strict: list[str] = []
    wrong: defaultdict[str, list[bool]] = defaultdict(list)
    silent: defaultdict[str, list[bool]] = defaultdict(list)
    unjudged = 0
    for attempt in first:
        naive = attempt.naive.get(profile, {}).get("status", UNJUDGED)
        tiers = tier_sets(attempt)[tier_set]
        oracle = status_over(attempt, tiers)
        cells[f"naive_{naive}_oracle_{oracle}"] += 1
        if naive != PASS:
            strict += [attempt.attempt_id] if (naive, oracle) == (FAIL, PASS) else []
            continue
        if oracle == UNJUDGED:
            unjudged += 1
            continue
        wrong[attempt.task].append(oracle == FAIL)
        silent[attempt.task].append(oracle == FAIL and not loud_over(attempt, tiers))
    failed = sum(map(sum, wrong.values()))
    judged = sum(map(len, wrong.values()))
    total = judged + unjudged
    return {
        "cells": {
            key: cells[key]
            for key in (f"naive_{a}_oracle_{b}" for a in (PASS, FAIL, UNJUDGED) for b in (PASS, FAIL, UNJUDGED))
        },
        "illusions": failed,
        "silent": sum(map(sum, silent.values())),
        "loud": failed - sum(map(sum, silent.values())),
        "strict_naive": len(strict),
        "strict_naive_attempts": strict,
        "p_oracle_fails_given_naive_passes": share(wrong).to_json(),
        "p_silent_given_naive_passes": share(silent).to_json(),
        "if_unjudged_pass": failed / total if total else None,
        "if_unjudged_fail": (failed + unjudged) / total if total else None,
    }


def tier_counts(first: Sequence[Attempt]) -> dict[str, dict[str, int]]:
    """Per tier: candidates that pass, fail loudly, fail silently, are unjudged."""
    counts: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
    for attempt in first:
        for tier, status in attempt.score.tiers.items() if attempt.score else ():
            key = status if status != FAIL else "loud" if loud_over(attempt, (tier,)) else "silent"
            counts[tier][key] += 1
    keys = (PASS, "loud", "silent", UNJUDGED)
    return {tier: {key: count[key] for key in keys} for tier, count in counts.items() if count}


def sanitizer_figures(first: Sequence[Attempt]) -> dict[str, Any] | None:
    """Of the survivors that were also run under compute-sanitizer: how many, in how many it could not be, and in which
    attempts it found an error. None where nobody looked."""
    looked = {a.attempt_id: a.score.sanitizer for a in first if a.score is not None and a.score.sanitizer is not None}
    if not looked:
        return None
    return {
        "looked": len(looked),
        "unclear": sum(bool(found["why"]) for found in looked.values()),
        "errors": [attempt_id for attempt_id, found in looked.items() if found["error"]],
    }


def failure_kinds(first: Sequence[Attempt]) -> dict[str, int]:
    """How often each kind was the failure of an attempt's first failing tier, most frequent first."""
    kinds = Counter(
        attempt.score.failure["kind"] for attempt in first if attempt.score is not None and attempt.score.failure
    )
    return dict(kinds.most_common())


def ability(first: Sequence[Attempt]) -> dict[str, Any]:
    """pass@k over tasks from round-0 samples, per tier set, for each k that some task has samples for. A task with fewer
    than k samples leaves pass@k undefined; an unjudged sample counts as not solved."""
    figures: dict[str, Any] = {}
    samples: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in first:
        samples[attempt.task].append(attempt)
    most = max(map(len, samples.values()))
    for name in tier_sets(first[0]):
        solved = [
            (len(group), sum(status_over(attempt, tier_sets(attempt)[name]) == PASS for attempt in group))
            for group in samples.values()
        ]
        figures[name] = {f"pass@{k}": _pass_at(k, solved).to_json() for k in PASS_AT if k <= most}
    return figures


def _pass_at(k: int, solved: Sequence[tuple[int, int]]) -> Estimate:
    values = [pass_at_k(n, correct, k) for n, correct in solved]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return undefined(f"undefined: {len(values) - len(known)} of {len(values)} tasks have fewer than {k} samples")
    return mean_over_tasks(known)


def task_table(attempts: Sequence[Attempt]) -> dict[str, dict[str, Any]]:
    """Per task and (model, strategy, arm): first and last round's status over stated tiers, samples solved, naive."""
    table: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    grouped: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        grouped[attempt.task, arm_name(attempt)].append(attempt)
    for (task, arm), group in sorted(grouped.items()):
        if not (begun := episodes(group).get(task)):
            continue
        first, last = ([submitted(episode, round_) for episode in begun] for round_ in (0, LAST))
        table[task][arm] = {
            "samples": len(last),
            "solved_first": sum(attempt.status_stated == PASS for attempt in first),
            "solved_last": sum(attempt.status_stated == PASS for attempt in last),
            "full_last": sum(attempt.status == PASS for attempt in last),
            "naive_first": {
                profile: sum(a.naive.get(profile, {}).get("status") == PASS for a in first)
                for profile in sorted({p for a in first for p in a.naive}, key=_profile_order)
            },
            "first_failure": next(
                (a.score.failure["kind"] for a in first if a.score is not None and a.score.failure), None
            ),
        }
    return dict(table)


def solved_share(summary: dict[str, Any]) -> float:
    """Share of tasks solved at the last round: score verdict, stated tiers, averaged over samples and conditions. Every
    task has as many of these, so this is a share of episodes; one that is planned and has no answer yet is not solved."""
    rows = [row for arms in summary["tasks"].values() for row in arms.values()]
    planned = summary["episodes"]["planned"]
    return sum(row["solved_last"] for row in rows) / planned if planned else 0.0


def request_figures(run: Path) -> dict[str, int]:
    """Requests sent, stored, failed, in doubt (sent without an outcome) and retries, from requests.jsonl."""
    sent: set[str] = set()
    outcomes: Counter[str] = Counter()
    settled: set[str] = set()
    doubts: set[str] = set()
    retries = 0
    for record in read_lines(run / "requests.jsonl")[0]:
        request, event = record.get("request_id", ""), record.get("event")
        if event == "sent":
            sent.add(request)
        elif event == "retry":
            retries += 1
        elif event == "in_doubt":
            doubts.add(request)
        elif event == "done":
            settled.add(request)
            outcomes[record.get("outcome", "")] += 1
    return {
        "sent": len(sent),
        "stored": outcomes["stored"],
        "failed": outcomes["failed"],
        "retries": retries,
        "in_doubt": len(doubts | (sent - settled)),
    }


def _profile_order(profile: str) -> tuple[int, str]:
    order = ("kernelbench", "kernelbench_v0", "tritonbench", "gpuemu", "geak", "backendbench")
    return (order.index(profile) if profile in order else len(order), profile)
