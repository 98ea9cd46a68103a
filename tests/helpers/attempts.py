"""Attempts as a run records them, made up to the point: who, which task, what each stream says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentloop.records import Attempt, StreamVerdict, Usage
from oracle.schema import FULL_TIERS
from oracle.verdict import FAIL, LOUD_KINDS, PASS


def stream(failing: str | None = None, kind: str = "numerical_mismatch") -> StreamVerdict:
    """A verdict that passes, or fails in one tier."""
    tiers = dict.fromkeys(FULL_TIERS, PASS)
    if failing is None:
        return StreamVerdict(status=PASS, tiers=tiers)
    failure = {"kind": kind, "tier": failing, "loud": kind in LOUD_KINDS, "message": "as made up", "detail": ""}
    return StreamVerdict(
        status=FAIL,
        tiers={**tiers, failing: FAIL},
        failure=failure,
        failures={failing: failure},
        cases_failed={failing: 1},
    )


def attempt(
    right: bool,
    *,
    task: str = "ops/a",
    sample: int = 0,
    round_: int = 0,
    model: str = "m",
    strategy: str = "zero_shot",
    arm: str = "minimized",
    told: bool | None = None,
    kind: str = "numerical_mismatch",
    failing: str = "shapes",
    naive: str | None = None,
    stated: Sequence[str] = FULL_TIERS,
    used: int | None = 100,
    last: bool = False,
    **more: Any,
) -> Attempt:
    """`told` is what the feedback stream says (as the score unless given; `last`: it was not judged); `failing` the tier
    of a failure; `naive` what the kernelbench check says (as the oracle unless given)."""
    score = stream(None if right else failing, kind)
    feedback = None if last else stream(None if (right if told is None else told) else failing, kind)
    episode = f"{model}:{strategy}:{arm}:{task}:{sample}"
    usage = Usage() if used is None else Usage(prompt_tokens=used - 40, completion_tokens=40)
    over_stated = FAIL if not right and failing in stated else PASS
    fields: dict[str, Any] = {
        "attempt_id": f"{episode}:{round_}", "episode_id": episode, "model": model, "author": "model",
        "prompt_strategy": strategy, "feedback": arm, "task": task, "task_hash": "0", "sample": sample, "round": round_,
        "oracle_version": "1", "tolerance": "derived", "domain": "full", "backend": "interpreter", "seed": 0,
        "tiers_stated": list(stated), "prompt_id": "p", "response_id": "r", "candidate_id": "c",
        "naive": {"kernelbench": {"status": naive or over_stated, "reason": ""}}, "score": score,
        "feedback_verdict": feedback, "status": score.status, "status_stated": over_stated, "usage": usage,
        "ends": last or (feedback is not None and feedback.status == PASS), "time": 0.0,
    }  # fmt: skip
    return Attempt(**fields | more)


def episode(pattern: str, rounds: int = 3, **fields: Any) -> list[Attempt]:
    """The rounds of an episode: + is right, - is not, of both streams; it is whole if it ends right or after `rounds`."""
    return [
        attempt(mark == "+", round_=place, last=place == rounds - 1, **fields) for place, mark in enumerate(pattern)
    ]


def all_of(*episodes: Iterable[Attempt]) -> list[Attempt]:
    return [one for group in episodes for one in group]
