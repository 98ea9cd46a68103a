"""What the page of a run holds beside its figures: an index of all episodes and, in packed blocks, what each attempt
said and did.

A block is JSON, gzipped, in base64. The index is decoded when the page opens; a block of details only when one of its
episodes is looked at. Within a block every text is stored once, and episodes of one task stand together, because their
prompts are the same. The blocks keep within a budget of bytes: where whole texts do not fit, all are cut shorter, and
where that is not enough, the last episodes have no details. The page says so; the run folder holds everything.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentloop.export import conversation, finite
from agentloop.files import stored_text
from agentloop.records import Attempt, StreamVerdict
from agentloop.report.words import AUTHORS, TIER_WORDS, kind_words, replay_command
from agentloop.scoring import status_over, tier_sets
from agentloop.speeds import load_speeds, speed_of, speed_words
from oracle.speed import Speed

BLOCK_CHARS = 400_000  # characters of JSON in one block of details: decoded in a few milliseconds


@dataclass(frozen=True)
class Cuts:
    """Most characters kept of one text, and most elements kept of one array."""

    text: int
    values: int


LEVELS = (Cuts(20_000, 256), Cuts(8_000, 64), Cuts(4_000, 32), Cuts(2_000, 16), Cuts(1_000, 8))


@dataclass(frozen=True)
class Block:
    """Details of the episodes `first` to `first + count - 1` of the index."""

    first: int
    count: int
    data: str


@dataclass(frozen=True)
class Contents:
    """The packed index and blocks, the cuts made, and the number of episodes without details."""

    index: str
    blocks: list[Block]
    cuts: Cuts
    left_out: int

    @property
    def shortened(self) -> bool:
        return self.cuts != LEVELS[0]


def pack(run: Path, config: Mapping[str, Any], attempts: Sequence[Attempt], budget: int) -> Contents:
    """All of a run's attempts within `budget` characters (the index always, details as far as they fit)."""
    episodes = _episodes(attempts)
    profiles = sorted({profile for attempt in attempts for profile in attempt.naive})
    said = {"labels": AUTHORS, "kinds": kind_words(), "tiers": TIER_WORDS}
    index = _packed({"profiles": profiles, "words": said, "episodes": [_entry(group, profiles) for group in episodes]})
    blocks: list[Block] = []
    cuts = LEVELS[0]
    for cuts in LEVELS:
        blocks = list(_blocks(run, config, episodes, cuts, budget - len(index)))
        if _covered(blocks) == len(episodes):
            break
    return Contents(index, blocks, cuts, len(episodes) - _covered(blocks))


def _covered(blocks: Sequence[Block]) -> int:
    return sum(block.count for block in blocks)


def _episodes(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Attempts by episode, rounds in order; episodes of one task and strategy together."""
    grouped: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        grouped[attempt.episode_id].append(attempt)
    groups = [sorted(group, key=lambda attempt: attempt.round) for group in grouped.values()]
    return sorted(groups, key=lambda g: (g[0].task, g[0].prompt_strategy, g[0].model, g[0].sample, g[0].feedback))


def _entry(group: Sequence[Attempt], profiles: Sequence[str]) -> dict[str, Any]:
    """An episode as the page's list shows and filters it."""
    first = group[0]
    return {
        "id": first.episode_id,
        "task": first.task,
        "model": first.model,
        "strategy": first.prompt_strategy,
        "feedback": first.feedback,
        "sample": first.sample,
        "author": first.author,
        "rounds": [_round(attempt, profiles) for attempt in group],
    }


def _round(attempt: Attempt, profiles: Sequence[str]) -> dict[str, Any]:
    """Statuses as letters (p, f, u): `naive` in the order of the profiles, `over` by tier set, `status` over the domain."""
    failure = (attempt.score.failure if attempt.score else None) or {}
    return {
        "round": attempt.round,
        "status": attempt.status[0],
        "over": {name: status_over(attempt, tiers)[0] for name, tiers in tier_sets(attempt).items()},
        "naive": "".join(attempt.naive.get(profile, {}).get("status", "unjudged")[0] for profile in profiles),
        "kind": failure.get("kind", ""),
        "tier": failure.get("tier", ""),
    }


@dataclass
class _Texts:
    """Texts of one block, each once; `add` gives a text's place."""

    limit: int
    places: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def add(self, text: str) -> int:
        if len(text) > self.limit:
            text = f"{text[: self.limit]}\n… {len(text) - self.limit} more characters in the run folder"
        if text not in self.places:
            self.size += len(text)
        return self.places.setdefault(text, len(self.places))


def _blocks(
    run: Path, config: Mapping[str, Any], episodes: Sequence[Sequence[Attempt]], cuts: Cuts, budget: int
) -> Iterator[Block]:
    """Blocks in the order of the index, until the budget is used up."""
    first, size, speeds = 0, 0, load_speeds(run)
    texts, details = _Texts(cuts.text), list[list[dict[str, Any]]]()
    for place, group in enumerate(episodes, 1):
        details.append(
            [
                {
                    **_detail(run, attempt, texts, cuts, speed_of(attempt, speeds)),
                    "replay": replay_command(run, attempt, config),
                }
                for attempt in group
            ]
        )
        size += 3_000 * len(group)
        if texts.size + size >= BLOCK_CHARS or place == len(episodes):
            data = _packed({"texts": list(texts.places), "episodes": details})
            budget -= len(data)
            if budget < 0:
                return
            yield Block(first, len(details), data)
            first, size = place, 0
            texts, details = _Texts(cuts.text), []


def _detail(run: Path, attempt: Attempt, texts: _Texts, cuts: Cuts, speed: Speed | None) -> dict[str, Any]:
    """What the page shows of an attempt; a file that is gone is shown as absent, never an error."""
    source = (stored_text(run / "candidates" / f"{attempt.candidate_id}.py") if attempt.candidate_id else None) or ""
    messages, answer = conversation(run, attempt.response_id)
    example = attempt.score.counterexample if attempt.score else None
    return {
        "messages": [[str(m.get("role")), texts.add(_spoken(m))] for m in messages or ()],
        "answer": texts.add(answer or ""),
        "source": texts.add(source),
        "score": _stream(attempt.score),
        "told": _stream(attempt.feedback_verdict),
        "naive": attempt.naive,
        "example": _shown(example, cuts.values) if example else None,
        "facts": {
            "candidate": f"{run}/candidates/{attempt.candidate_id}.py" if attempt.candidate_id else None,
            "response": f"{run}/responses/{attempt.response_id}.json" if attempt.response_id else None,
            "extraction": attempt.extraction,
            "tokens": attempt.usage.model_dump(),
            "seconds": attempt.timings,
            "speed": speed_words(speed) if speed else None,
            "seed": attempt.seed,
            "tolerance": attempt.tolerance,
            "backend": attempt.backend,
            "oracle version": attempt.oracle_version,
            "fault": attempt.infrastructure_error,
        },
        "stated": attempt.tiers_stated,
        "domain": attempt.domain,
    }


def _spoken(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def _stream(verdict: StreamVerdict | None) -> dict[str, Any] | None:
    """A stream's verdict without its counterexample: that of the feedback stream stands in the next round's prompt."""
    if verdict is None:
        return None
    kept = {"status", "tiers", "failure", "failures", "cases_run", "cases_failed", "executions", "notes"}
    return verdict.model_dump(include=kept)


def _shown(example: dict[str, Any], values: int) -> dict[str, Any]:
    """A counterexample with arrays longer than `values` left out (their worst elements stay)."""
    keys = ("case", "inputs", "got", "expected", "stats", "diagnosis", "executions", "original")
    return {key: _short(example.get(key), values) for key in keys}


def _short(value: Any, values: int) -> Any:
    if isinstance(value, dict):
        return {key: _short(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return None if len(value) > values else [_short(item, values) for item in value]
    return value


def _packed(value: Any) -> str:
    text = json.dumps(finite(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)).decode()
