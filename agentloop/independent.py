"""What independent samples reach for what an arm spends: the baseline that repair has to beat.

The baseline asks the first request again and again until the feedback stream passes an answer, and submits its last: the
stopping rule of every episode, without feedback. Its answers are those of arm `none`, or, where that was not run, the first
answers of all samples. An episode of sample s that has used up its own answers goes on with those of the next sample, so
that with N samples it can be followed N times as far; the task stays the unit of inference.

Where an arm spends x requests (or tokens) an episode on average, the baseline is the mixture of stopping after q and after
q + 1 answers that spends x too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentloop.outcomes import ByTask, Episode, first_answers, submitted, tokens, verdict_over
from agentloop.records import Attempt
from agentloop.statistics import mean_difference, mean_over_tasks
from oracle.verdict import PASS

Cost = Callable[[Attempt], float]


@dataclass(frozen=True)
class Stream:
    """Independent answers to one task in order, up to the one that stops or to the last there is."""

    answers: Episode
    stopped: bool


@dataclass(frozen=True)
class Curve:
    """The baseline after q answers at most, q = 0, 1, …: what it spends an episode, the share solved of each task, and the
    share of episodes that had no more answers to go on with."""

    spent: np.ndarray
    solved: dict[str, np.ndarray]
    ran_out: np.ndarray

    def at(self, spend: float) -> tuple[dict[str, float], float, bool]:
        """Share solved by task and share that ran out where `spend` is spent on average; whether the answers end before."""
        places = np.arange(self.spent.size)
        place = float(np.interp(spend, self.spent, places))
        solved = {task: float(np.interp(place, places, values)) for task, values in self.solved.items()}
        return solved, float(np.interp(place, places, self.ran_out)), bool(spend > self.spent[-1] + 1e-9)


def streams(attempts: Sequence[Attempt], alone: ByTask) -> dict[str, list[Stream]]:
    """A stream for each sample of each task. `attempts` are all of one model and strategy, `alone` its episodes without
    feedback (empty where arm `none` was not run)."""
    own: Mapping[str, Sequence[Episode]] = alone
    if not alone:
        first: dict[str, list[Episode]] = {}
        for attempt in first_answers(attempts):
            first.setdefault(attempt.task, []).append([attempt])
        own = first
    last = max((attempt.round for attempt in attempts), default=0)
    return {
        task: [_stream([*group[start:], *group[:start]], last) for start in range(len(group))]
        for task, group in own.items()
    }


def _stream(group: Sequence[Episode], last: int) -> Stream:
    answers: Episode = []
    for episode in group:
        answers.extend(episode)
        if _stops(episode[-1], last):
            return Stream(answers, True)
    return Stream(answers, False)


def _stops(attempt: Attempt, last: int) -> bool:
    """Whether an episode would end with this answer however many rounds it had. The feedback stream is not judged in a
    run's last round: the score stream stands in."""
    if attempt.ends is not None and attempt.round < last:
        return attempt.ends
    return verdict_over(attempt.feedback_verdict or attempt.score, attempt.tiers_stated) == PASS


def curve(found: Mapping[str, Sequence[Stream]], cost: Cost) -> Curve:
    """The baseline's curve over the tasks of `found`."""
    most = max(len(stream.answers) for group in found.values() for stream in group)
    spent, solved, ran_out = [], {}, []
    for task, group in found.items():
        rows = [_follow(stream, most, cost) for stream in group]
        spent.append(np.mean([row[0] for row in rows], axis=0))
        solved[task] = np.mean([row[1] for row in rows], axis=0)
        ran_out.append(np.mean([row[2] for row in rows], axis=0))
    return Curve(np.mean(spent, axis=0), solved, np.mean(ran_out, axis=0))


def _follow(stream: Stream, most: int, cost: Cost) -> np.ndarray:
    """Spent, solved, ran out after 0 … most answers of one stream (3 × most + 1)."""
    rows = np.zeros((3, most + 1))
    for q in range(1, most + 1):
        used = stream.answers[:q]
        rows[:, q] = (
            sum(map(cost, used)),
            used[-1].status_stated == PASS,
            q > len(stream.answers) and not stream.stopped,
        )
    return rows


def against_independent(arm: ByTask, found: Mapping[str, Sequence[Stream]], rounds: int) -> dict[str, Any]:
    """Per round of an arm: what it reached and what independent samples reach for as many requests, and as many tokens;
    the difference is paired over tasks, None where fewer samples were asked than that takes. `equal_tokens` is None where
    an endpoint did not tell its tokens."""
    both = [task for task in arm if task in found]
    arm, found = {task: arm[task] for task in both}, {task: found[task] for task in both}
    attempts = [a for group in arm.values() for episode in group for a in episode]
    attempts += [a for group in found.values() for stream in group for a in stream.answers]
    told = bool(attempts) and all(tokens(attempt) is not None for attempt in attempts)
    return {
        "equal_requests": _rows(arm, found, rounds, lambda attempt: 1.0) if both else [],
        "equal_tokens": _rows(arm, found, rounds, lambda attempt: float(tokens(attempt) or 0)) if told else None,
    }


def _rows(arm: ByTask, found: Mapping[str, Sequence[Stream]], rounds: int, cost: Cost) -> list[dict[str, Any]]:
    baseline = curve(found, cost)
    return [_row(arm, baseline, round_, cost) for round_ in range(rounds)]


def _row(arm: ByTask, baseline: Curve, round_: int, cost: Cost) -> dict[str, Any]:
    reached = {
        task: mean_of(group, lambda e: submitted(e, round_).status_stated == PASS) for task, group in arm.items()
    }
    spend = float(np.mean([mean_of(group, lambda e: spent(e, round_, cost)) for group in arm.values()]))
    solved, ran_out, short = baseline.at(spend)
    return {
        "round": round_,
        "spent": spend,
        "arm": float(np.mean(list(reached.values()))),
        "independent": mean_over_tasks(list(solved.values())).to_json(),
        "difference": None if short else mean_difference([reached[task] - solved[task] for task in arm]).to_json(),
        "ran_out": ran_out,
        "short": short,
    }


def mean_of(group: Sequence[Episode], value: Callable[[Episode], float]) -> float:
    return sum(map(value, group)) / len(group)


def spent(episode: Episode, round_: int, cost: Cost) -> float:
    """What an episode has used up to a round."""
    return sum(cost(attempt) for attempt in episode if attempt.round <= round_)
