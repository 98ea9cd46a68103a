"""From attempts to figures: one dictionary, written as `summary.json` and drawn by every report.

Disagreement is counted on round 0 only. Oracle statuses are recomputed from each attempt's tiers, so that every figure
can be given over the tiers that the prompt stated (the headline), the core domain and the full domain.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agentloop.records import Attempt
from agentloop.statistics import FEW_TASKS, mean_over_tasks, pass_at_k, share
from oracle.errors import UsageError
from oracle.schema import DOMAINS, TIERS
from oracle.verdict import FAIL, PASS, UNJUDGED

SUMMARY_VERSION = 1
SIMULATED = ("offline",)
PASS_AT = (1, 2, 5, 10)


def load_attempts(run: Path) -> list[Attempt]:
    """Attempts of a run folder in the order recorded; a torn last line is left out. Raises UsageError for no such run."""
    path = run / "attempts.jsonl"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UsageError(f"{run} is not a run folder: it has no attempts.jsonl") from None
    attempts: dict[str, Attempt] = {}
    for number, line in enumerate(lines, 1):
        try:
            attempt = Attempt.model_validate_json(line)
        except ValueError:
            if number == len(lines):
                break
            raise UsageError(f"{path} line {number} is not an attempt of this version") from None
        attempts[attempt.attempt_id] = attempt
    return list(attempts.values())


def summarize(run: Path) -> dict[str, Any]:
    """All figures of a run, as JSON values; see the functions below for each part."""
    attempts = load_attempts(run)
    first = [attempt for attempt in attempts if attempt.round == 0]
    groups = _by_author(first)
    return {
        "version": SUMMARY_VERSION,
        "run": run.name,
        "simulation": any(attempt.author in SIMULATED for attempt in attempts),
        "attempts": len(attempts),
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
            }
            for name, group in groups.items()
        },
        "repair": repair(attempts),
        "tasks": task_table(attempts),
    }


def tier_sets(attempt: Attempt) -> dict[str, tuple[str, ...]]:
    """Tier sets that figures are given over: stated by the prompt, core, and (where judged) full."""
    sets = {"stated": tuple(attempt.tiers_stated), "core": DOMAINS["core"]}
    return {**sets, "full": DOMAINS["full"]} if attempt.domain == "full" else sets


def status_over(attempt: Attempt, tiers: Iterable[str]) -> str:
    """Status of the score stream over some tiers: fail if one fails, else unjudged if one is, else pass."""
    seen = [attempt.score.tiers[tier] for tier in tiers if tier in attempt.score.tiers] if attempt.score else []
    if FAIL in seen:
        return FAIL
    return UNJUDGED if UNJUDGED in seen or not seen else PASS


def loud_over(attempt: Attempt, tiers: Iterable[str]) -> bool:
    """Whether the first failing tier among `tiers` failed loudly (raised or was refused)."""
    chosen = set(tiers)
    for tier in TIERS:
        if tier in chosen and attempt.score and tier in attempt.score.failures:
            return bool(attempt.score.failures[tier].get("loud"))
    return False


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
    wrong: defaultdict[str, list[bool]] = defaultdict(list)
    silent: defaultdict[str, list[bool]] = defaultdict(list)
    unjudged = 0
    for attempt in first:
        naive = attempt.naive.get(profile, {}).get("status", UNJUDGED)
        tiers = tier_sets(attempt)[tier_set]
        oracle = status_over(attempt, tiers)
        cells[f"naive_{naive}_oracle_{oracle}"] += 1
        if naive != PASS:
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
        "strict_naive": cells[f"naive_{FAIL}_oracle_{PASS}"],
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


def failure_kinds(first: Sequence[Attempt]) -> dict[str, int]:
    """How often each kind was the failure of an attempt's first failing tier, most frequent first."""
    kinds = Counter(
        attempt.score.failure["kind"] for attempt in first if attempt.score is not None and attempt.score.failure
    )
    return dict(kinds.most_common())


def ability(first: Sequence[Attempt]) -> dict[str, Any]:
    """pass@k over tasks from round-0 samples, per tier set; a task with fewer than k samples leaves pass@k undefined."""
    figures: dict[str, Any] = {}
    samples: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in first:
        samples[attempt.task].append(attempt)
    for name in tier_sets(first[0]):
        solved = {
            task: (len(group), sum(status_over(a, tier_sets(a)[name]) == PASS for a in group))
            for task, group in samples.items()
        }
        figures[name] = {}
        for k in PASS_AT:
            values = [pass_at_k(n, correct, k) for n, correct in solved.values()]
            if all(value is not None for value in values):
                figures[name][f"pass@{k}"] = mean_over_tasks([v for v in values if v is not None]).to_json()
    return figures


def repair(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Per (model, strategy, arm): solved by round (score verdict over stated tiers), repair and regression rates."""
    arms: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        arms[_arm(attempt)].append(attempt)
    return {arm: _repair_of(group) for arm, group in sorted(arms.items())}


def _repair_of(group: Sequence[Attempt]) -> dict[str, Any]:
    episodes: defaultdict[str, dict[int, Attempt]] = defaultdict(dict)
    for attempt in group:
        episodes[attempt.episode_id][attempt.round] = attempt
    rounds = 1 + max(attempt.round for attempt in group)
    solved = []
    for r in range(rounds):
        by_task: defaultdict[str, list[bool]] = defaultdict(list)
        for episode in episodes.values():
            submitted = episode[max(q for q in episode if q <= r)] if min(episode) <= r else None
            if submitted is not None:
                by_task[submitted.task].append(submitted.status_stated == PASS)
        solved.append({"round": r, **share(by_task).to_json()})
    steps = [(episode[r], episode[r + 1]) for episode in episodes.values() for r in sorted(episode) if r + 1 in episode]
    repaired: defaultdict[str, list[bool]] = defaultdict(list)
    for before, after in steps:
        if before.status_stated == FAIL and after.status_stated != UNJUDGED:
            kind = (before.score.failure or {}).get("kind", "beyond the prompt") if before.score else "?"
            repaired[kind].append(after.status_stated == PASS)
    regressed = [after.status_stated == FAIL for before, after in steps if before.status_stated == PASS]
    return {
        "author": group[0].author,
        "episodes": len(episodes),
        "requests": len(group),
        "solved_by_round": solved,
        "repair_rate": {
            kind: {"fixed": sum(values), "of": len(values)}
            for kind, values in sorted(repaired.items(), key=lambda item: -len(item[1]))
        },
        "regressions": {"broken": sum(regressed), "of": len(regressed)},
        "stream_gap": _stream_gap(group),
    }


def _stream_gap(group: Sequence[Attempt]) -> dict[str, int]:
    """Attempts that pass one stream and fail the other: what the feedback cases did not show, and the reverse."""
    both = [a for a in group if a.score is not None and a.feedback_verdict is not None]
    return {
        "judged_in_both": len(both),
        "feedback_pass_score_fail": sum(
            a.feedback_verdict.status == PASS and a.score.status == FAIL for a in both if a.feedback_verdict and a.score
        ),
        "feedback_fail_score_pass": sum(
            a.feedback_verdict.status == FAIL and a.score.status == PASS for a in both if a.feedback_verdict and a.score
        ),
    }


def task_table(attempts: Sequence[Attempt]) -> dict[str, dict[str, Any]]:
    """Per task and (model, strategy, arm): first and last round's status over stated tiers, samples solved, naive."""
    table: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    grouped: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        grouped[attempt.task, _arm(attempt)].append(attempt)
    for (task, arm), group in sorted(grouped.items()):
        last: dict[str, Attempt] = {}
        for attempt in sorted(group, key=lambda a: a.round):
            last[attempt.episode_id] = attempt
        first = [attempt for attempt in group if attempt.round == 0]
        table[task][arm] = {
            "samples": len(last),
            "solved_first": sum(attempt.status_stated == PASS for attempt in first),
            "solved_last": sum(attempt.status_stated == PASS for attempt in last.values()),
            "full_last": sum(attempt.status == PASS for attempt in last.values()),
            "naive_first": {
                profile: sum(a.naive.get(profile, {}).get("status") == PASS for a in first)
                for profile in sorted({p for a in first for p in a.naive}, key=_profile_order)
            },
            "first_failure": next(
                (a.score.failure["kind"] for a in first if a.score is not None and a.score.failure), None
            ),
        }
    return dict(table)


def request_figures(run: Path) -> dict[str, int]:
    """Requests sent, stored, failed, in doubt (sent without an outcome) and retries, from requests.jsonl."""
    sent: set[str] = set()
    outcomes: Counter[str] = Counter()
    settled: set[str] = set()
    doubts: set[str] = set()
    retries = 0
    path = run / "requests.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
            request, event = record["request_id"], record["event"]
        except (ValueError, KeyError, TypeError):
            continue
        if event == "sent":
            sent.add(request)
        elif event == "retry":
            retries += 1
        elif event == "in_doubt":
            doubts.add(request)
        elif event == "done":
            settled.add(request)
            outcomes[record.get("outcome", "")] += 1
    open_requests = {request for request in sent - settled}
    return {
        "sent": len(sent),
        "stored": outcomes["stored"],
        "failed": outcomes["failed"],
        "retries": retries,
        "in_doubt": len(doubts | open_requests),
    }


def _by_author(first: Sequence[Attempt]) -> dict[str, list[Attempt]]:
    """Round-0 attempts by model and prompt strategy. Arms share round-0 answers: each is counted once."""
    groups: defaultdict[str, dict[tuple[str, int], Attempt]] = defaultdict(dict)
    for attempt in first:
        name = f"{attempt.model} · {attempt.prompt_strategy}"
        groups[name].setdefault((attempt.task, attempt.sample), attempt)
    return {name: list(group.values()) for name, group in sorted(groups.items())}


def _arm(attempt: Attempt) -> str:
    return f"{attempt.model} · {attempt.prompt_strategy} · {attempt.feedback}"


def _profile_order(profile: str) -> tuple[int, str]:
    order = ("kernelbench", "kernelbench_v0", "tritonbench", "gpuemu", "geak", "backendbench")
    return (order.index(profile) if profile in order else len(order), profile)
