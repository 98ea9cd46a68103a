"""What rounds and feedback bring: solved by round, repairs by failure kind, regressions, feedback stream against score.

All over the tiers that the prompt stated. An answer that could not be judged counts as not solved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from agentloop.independent import Cost, against_independent, mean_of, spent, streams
from agentloop.outcomes import (
    ByTask,
    author_name,
    by_arm,
    episodes,
    failure_over,
    submitted,
    tokens,
    verdict_over,
)
from agentloop.records import Attempt
from agentloop.statistics import averaged, mean_difference, share
from oracle.verdict import FAIL, PASS, UNJUDGED

Observed = defaultdict[str, list[bool]]  # by task


def repair(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """The figures of every (model, prompt strategy, feedback arm)."""
    arms = by_arm(attempts)
    of_author: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        of_author[author_name(attempt)].append(attempt)
    figures = {}
    for name, group in arms.items():
        author, begun = author_name(group[0]), episodes(group)
        alone = episodes(arms.get(f"{author} · none", []))
        rounds = 1 + max(attempt.round for attempt in group)
        figures[name] = _figures(group, begun, rounds) | {
            "independent": against_independent(begun, streams(of_author[author], alone), rounds)
            if group[0].feedback != "none" and rounds > 1
            else None
        }
    return figures


def _figures(group: Sequence[Attempt], begun: ByTask, rounds: int) -> dict[str, Any]:
    return {
        "author": group[0].author,
        "episodes": sum(map(len, begun.values())),
        "requests": len(group),
        "solved_by_round": [_solved(begun, round_) for round_ in range(rounds)],
        **_repairs(begun),
        "regressions": _regressions(begun),
        "stream_gap": stream_gap(group),
    }


def _solved(begun: ByTask, round_: int) -> dict[str, Any]:
    """Share whose latest answer is right, samples averaged within their task, and what they have used so far."""
    right = {task: [submitted(e, round_).status_stated == PASS for e in group] for task, group in begun.items()}
    told = all(tokens(attempt) is not None for group in begun.values() for episode in group for attempt in episode)
    return {
        "round": round_,
        **averaged(right).to_json(),
        "requests": _mean_spent(begun, round_, lambda attempt: 1.0),
        "tokens": _mean_spent(begun, round_, lambda attempt: float(tokens(attempt) or 0)) if told else None,
    }


def _mean_spent(begun: ByTask, round_: int, cost: Cost) -> float | None:
    means = [mean_of(group, lambda episode: spent(episode, round_, cost)) for group in begun.values()]
    return float(np.mean(means)) if means else None


def _steps(begun: ByTask) -> Iterable[tuple[Attempt, Attempt]]:
    """Each answer with the next of its episode."""
    for group in begun.values():
        for episode in group:
            yield from pairwise(episode)


def _repairs(begun: ByTask) -> dict[str, Any]:
    """P(right at r + 1 | failed at r), by the kind of the failure at r and over all kinds."""
    kinds: defaultdict[str, Observed] = defaultdict(lambda: defaultdict(list))
    together: Observed = defaultdict(list)
    for before, after in _steps(begun):
        if before.status_stated == FAIL:
            failure = failure_over(before, before.tiers_stated)
            fixed = after.status_stated == PASS
            kinds[failure["kind"] if failure else "unknown"][before.task].append(fixed)
            together[before.task].append(fixed)
    rates = {kind: _rate(found, "fixed") for kind, found in kinds.items()}
    return {
        "repaired": _rate(together, "fixed"),
        "repair_rate": dict(sorted(rates.items(), key=lambda item: -item[1]["of"])),
    }


def _regressions(begun: ByTask) -> dict[str, Any]:
    """P(fails at r + 1 | right at r): right for the score stream, while the feedback stream still found a failure."""
    broken: Observed = defaultdict(list)
    for before, after in _steps(begun):
        if before.status_stated == PASS:
            broken[before.task].append(after.status_stated == FAIL)
    return _rate(broken, "broken")


def _rate(observed: Observed, name: str) -> dict[str, Any]:
    values = [value for group in observed.values() for value in group]
    return {name: sum(values), "of": len(values), "rate": share(observed).to_json()}


def stream_gap(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Answers judged in both streams: how often each stream passes, their difference paired over tasks (feedback minus
    score: what mending the shown cases alone gains), and how often an answer that feedback passes fails the score."""
    streams_of: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for attempt in attempts:
        told, score = (verdict_over(v, attempt.tiers_stated) for v in (attempt.feedback_verdict, attempt.score))
        if UNJUDGED not in (told, score) and attempt.rescored_from is None:
            streams_of[attempt.task].append((told == PASS, score == PASS))
    pairs = [pair for group in streams_of.values() for pair in group]
    wrongly = {task: [not score for told, score in group if told] for task, group in streams_of.items()}
    gaps = [sum(told - score for told, score in group) / len(group) for group in streams_of.values()]
    return {
        "judged_in_both": len(pairs),
        "feedback_pass_score_fail": sum(told and not score for told, score in pairs),
        "feedback_fail_score_pass": sum(score and not told for told, score in pairs),
        "feedback_passes": share({task: [told for told, _ in group] for task, group in streams_of.items()}).to_json(),
        "score_passes": share({task: [score for _, score in group] for task, group in streams_of.items()}).to_json(),
        "gap": mean_difference(gaps).to_json(),
        "score_fails_given_feedback_passes": share(wrongly).to_json(),
    }
