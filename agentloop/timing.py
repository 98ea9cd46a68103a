"""The last part of a run on a GPU: candidates are timed, one at a time, after all judging is done.

What is timed is recorded in `speed.jsonl`, a line per task and candidate; `agentloop resume` times what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from rich.console import Console

from agentloop.files import Log, read_regular
from agentloop.records import Attempt, SpeedRecord
from agentloop.speeds import FILE, Key, key_of, parsed, speed_words, worth_timing
from agentloop.store import Store
from oracle.errors import InfrastructureError
from oracle.judge import Judge
from oracle.schema import Task
from oracle.speed import Stopwatch

FAULTS_IN_A_ROW = 3


def time_candidates(store: Store, tasks: Mapping[str, Task], judge: Judge, console: Console | None = None) -> list[str]:
    """Time every recorded candidate that the oracle or a naive check passes and that has no time yet; returns those that
    could not be timed, with the reason: a resume tries them again."""
    console = console or Console(stderr=True)
    log = Log(store.path / FILE)
    known = parsed(log.path, log.records)
    missing = [key for key in _keys(store.attempts.values()) if key not in known and key[0] in tasks]
    if not missing:
        return []
    log.open()
    watch, untimed, in_a_row = Stopwatch(judge), list[str](), 0
    try:
        for number, (task_id, candidate) in enumerate(missing, 1):
            task = tasks[task_id]
            try:
                speed = watch.time(task, _source(store, candidate))
            except InfrastructureError as error:
                untimed.append(f"{task_id} {candidate}: {error}")
                said, in_a_row = str(error), in_a_row + 1
            else:
                record = SpeedRecord(
                    task=task_id, task_hash=task.digest, candidate_id=candidate, speed=speed, time=time.time()
                )
                log.append(record.model_dump(mode="json"))
                said, in_a_row = speed_words(speed), 0
            line = f"timing [{number}/{len(missing)}] {task_id} {candidate}: {said}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
            if in_a_row == FAULTS_IN_A_ROW:
                return untimed + [f"{name} {other}: not tried" for name, other in missing[number:]]
    finally:
        log.close()
    return untimed


def _keys(attempts: Iterable[Attempt]) -> list[Key]:
    """Each once, task by task: what a task needs to be timed is made once."""
    return sorted({key for attempt in attempts if worth_timing(attempt) and (key := key_of(attempt))})


def _source(store: Store, candidate: str) -> str:
    file = store.path / "candidates" / f"{candidate}.py"
    try:
        return read_regular(file).decode("utf-8", "replace")
    except OSError as error:
        raise InfrastructureError(f"{file}: {error.strerror}") from None
