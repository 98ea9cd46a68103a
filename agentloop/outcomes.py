"""What recorded attempts say over chosen tiers, and how they belong together. Every figure is counted through these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from agentloop.records import Attempt, StreamVerdict
from oracle.schema import DOMAINS, TIERS
from oracle.verdict import FAIL, PASS, UNJUDGED

Episode = list[Attempt]  # the rounds of one episode, in order
LAST = 1 << 30  # a round that no episode passes
ByTask = dict[str, list[Episode]]


def tier_sets(attempt: Attempt) -> dict[str, tuple[str, ...]]:
    """Tier sets that figures are given over: stated by the prompt, core, and (where judged) full."""
    sets = {"stated": tuple(attempt.tiers_stated), "core": DOMAINS["core"]}
    return {**sets, "full": DOMAINS["full"]} if attempt.domain == "full" else sets


def verdict_over(verdict: StreamVerdict | None, tiers: Iterable[str]) -> str:
    """Status of one stream over some tiers: fail if one fails, else unjudged if one is, else pass."""
    seen = [verdict.tiers[tier] for tier in tiers if tier in verdict.tiers] if verdict else []
    if FAIL in seen:
        return FAIL
    return UNJUDGED if UNJUDGED in seen or not seen else PASS


def status_over(attempt: Attempt, tiers: Iterable[str]) -> str:
    """Status of the score stream over some tiers."""
    return verdict_over(attempt.score, tiers)


def failure_over(attempt: Attempt, tiers: Iterable[str]) -> Mapping[str, Any] | None:
    """The failure of the first failing tier among `tiers`; None where none of them failed."""
    failures, chosen = (attempt.score.failures if attempt.score else {}), set(tiers)
    return next((failures[tier] for tier in TIERS if tier in chosen and tier in failures), None)


def loud_over(attempt: Attempt, tiers: Iterable[str]) -> bool:
    """Whether the first failing tier among `tiers` failed loudly (raised or was refused)."""
    return bool((failure_over(attempt, tiers) or {}).get("loud"))


def author_name(attempt: Attempt) -> str:
    """What first answers are grouped by."""
    return f"{attempt.model} · {attempt.prompt_strategy}"


def arm_name(attempt: Attempt) -> str:
    """What episodes are grouped by: a condition."""
    return f"{author_name(attempt)} · {attempt.feedback}"


def by_arm(attempts: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    arms: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        arms[arm_name(attempt)].append(attempt)
    return dict(sorted(arms.items()))


def episodes(attempts: Iterable[Attempt]) -> ByTask:
    """The episodes that have begun, by task, samples in order."""
    found: defaultdict[tuple[str, int, str], Episode] = defaultdict(list)
    for attempt in attempts:
        found[attempt.task, attempt.sample, attempt.episode_id].append(attempt)
    by_task: ByTask = {}
    for (task, _, _), group in sorted(found.items()):
        group.sort(key=lambda attempt: attempt.round)
        if group[0].round == 0:
            by_task.setdefault(task, []).append(group)
    return by_task


def first_answers(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Attempts of round 0, each answer once: arms of one model and strategy share them."""
    found: dict[tuple[str, str, int], Attempt] = {}
    for attempt in attempts:
        if attempt.round == 0:
            found.setdefault((author_name(attempt), attempt.task, attempt.sample), attempt)
    return list(found.values())


def submitted(episode: Episode, round_: int) -> Attempt:
    """The answer that an episode stands by after a round: the latest; one that stopped keeps its last."""
    return [attempt for attempt in episode if attempt.round <= round_][-1]


def tokens(attempt: Attempt) -> int | None:
    """Tokens of prompt and answer, as the endpoint counted them; None where it did not say."""
    prompt, completion = attempt.usage.prompt_tokens, attempt.usage.completion_tokens
    return None if prompt is None or completion is None else prompt + completion
