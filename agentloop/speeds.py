"""`speed.jsonl`: what candidates of a run took on the GPU, and fast_p over the first answers.

fast_p is KernelBench's: the share of tasks whose answer is right and more than p times as fast as eager PyTorch, samples
averaged within a task. "Right" is
here said by each naive check and, beside them, by the oracle over the stated tiers. A benchmark that asks a naive check
looks no further, so what is held against a time (`Speed.flags`) counts for the oracle's column alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentloop.errors import UsageError
from agentloop.files import read_lines
from agentloop.records import Attempt, SpeedRecord
from agentloop.statistics import averaged
from oracle.speed import Speed
from oracle.verdict import PASS

FILE = "speed.jsonl"
FAST = (0.5, 0.8, 1.0, 1.5, 2.0)  # the p that fast_p is given for
ORACLE = "oracle"
Key = tuple[str, str]  # task, candidate
Speeds = Mapping[Key, Speed]


def load_speeds(run: Path) -> dict[Key, Speed]:
    """By task and candidate; empty where nothing was timed. UsageError for a line of another version."""
    return parsed(run / FILE, read_lines(run / FILE)[0])


def parsed(path: Path, lines: Iterable[Mapping[str, Any]]) -> dict[Key, Speed]:
    found: dict[Key, Speed] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = SpeedRecord(**line)
        except (ValueError, TypeError):
            raise UsageError(f"{path} line {number} is not a time of this version; repair or remove it") from None
        found.setdefault((record.task, record.candidate_id), record.speed)
    return found


def key_of(attempt: Attempt) -> Key | None:
    """Where an attempt's time is; None where the answer held no code."""
    return (attempt.task, attempt.candidate_id) if attempt.candidate_id else None


def speed_of(attempt: Attempt, speeds: Speeds) -> Speed | None:
    key = key_of(attempt)
    return speeds.get(key) if key else None


def worth_timing(attempt: Attempt) -> bool:
    """Whether the oracle or a naive check passes it."""
    statuses = [attempt.status, attempt.status_stated, *(result["status"] for result in attempt.naive.values())]
    return attempt.candidate_id is not None and PASS in statuses


def speed_figures(first: Sequence[Attempt], speeds: Speeds) -> dict[str, Any] | None:
    """Of one model's first answers; None where none was timed."""
    timed = {attempt.attempt_id: found for attempt in first if (found := speed_of(attempt, speeds)) is not None}
    if not timed:
        return None
    checks = [ORACLE, *dict.fromkeys(profile for attempt in first for profile in attempt.naive)]
    return {
        "timed": len(timed),
        "untimed": sum(worth_timing(attempt) and attempt.attempt_id not in timed for attempt in first),
        "flagged": sum(bool(found.flags) for found in timed.values()),
        "gpu": sorted({found.gpu for found in timed.values()}),
        "fast_p": {check: {f"{p:g}": _fast_p(first, timed, check, p).to_json() for p in FAST} for check in checks},
        "fast_and_wrong": {
            check: sum(_fast(a, timed, check, 1.0) and not _fast(a, timed, ORACLE, 1.0) for a in first)
            for check in checks[1:]
        },
    }


def _fast_p(first: Sequence[Attempt], timed: Mapping[str, Speed], check: str, p: float) -> Any:
    by_task: defaultdict[str, list[bool]] = defaultdict(list)
    for attempt in first:
        by_task[attempt.task].append(_fast(attempt, timed, check, p))
    return averaged(by_task)


def _fast(attempt: Attempt, timed: Mapping[str, Speed], check: str, p: float) -> bool:
    speed = timed.get(attempt.attempt_id)
    if speed is None or speed.speedup is None or not speed.speedup > p:
        return False
    if check == ORACLE:
        return attempt.status_stated == PASS and not speed.flags
    return attempt.naive.get(check, {}).get("status") == PASS


def speed_words(speed: Speed) -> str:
    """A candidate's time in one line, with what is held against it."""
    held = f"not to be trusted ({', '.join(speed.flags)}): {speed.message}" if speed.flags else ""
    if speed.median_us is None:
        return held or "no time"
    shape = ", ".join(f"{name} {size}" for name, size in speed.shape.items())
    time = f"{speed.median_us:.1f} µs [{speed.p10_us:.1f}, {speed.p90_us:.1f}], eager {speed.eager_us:.1f} µs"
    return f"{time}, {speed.speedup:.2f}x at {shape}, {speed.dtype}" + (f"; {held}" if held else "")
