"""Runs the oracle's measurements on its own corpus (`oracle.validation`), resumable at any point."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import oracle
from agentloop.errors import InfrastructureError, UsageError
from agentloop.files import Log
from oracle.schema import Task
from oracle.validation import Bench, Job, equivalence

Records = dict[tuple[str, str], dict[str, Any]]  # by part and key
Stage = Callable[[Records], list[Job]]  # jobs that follow from what is known


def oracle_digest(tasks: Mapping[str, Task]) -> str:
    """16 hexadecimal digits for all that a measurement depends on: the oracle's code, its corpus and the tasks. The proofs
    that mutants are equivalent are left out: they are written of what was measured."""
    state = hashlib.blake2b(digest_size=8)
    root = Path(oracle.__file__).parent
    for path in sorted({*root.rglob("*.py"), *root.rglob("*.json")} - {equivalence.FILE}):
        state.update(str(path.relative_to(root)).encode() + path.read_bytes())
    for task_id, task in sorted(tasks.items()):
        state.update(f"{task_id} {task.digest}".encode())
    return state.hexdigest()


class Results:
    """The file of results: a first line that says what they are results of, then one line per job."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        """Read what is there; nothing is changed before `open`. Raises UsageError for a file that is damaged, and for
        results of something else."""
        self._log, self._header = Log(path), header
        self._lock = threading.Lock()
        self._refuse_others()
        self.records: Records = {(record["part"], record["key"]): record for record in self._log.records[1:]}

    def open(self, backend: str) -> None:
        """Begin the file, or go on with it. Raises UsageError for results on another backend."""
        self._header = {**self._header, "backend": backend}
        self._refuse_others()
        self._log.open()
        if not self._log.records:
            self._log.append(self._header)

    def _refuse_others(self) -> None:
        found = self._log.records[0] if self._log.records else self._header
        different = sorted(name for name, value in self._header.items() if found.get(name) != value)
        if different:
            raise UsageError(
                f"--out {str(self._log.path)!r} holds results of another oracle or other settings "
                f"({', '.join(different)} differ); remove that file or name another"
            )

    def add(self, job: Job, result: dict[str, Any], seconds: float) -> None:
        record = {"part": job.part, "key": job.key, "seconds": round(seconds, 3), **result}
        with self._lock:
            self._log.append(record)
            self.records[job.part, job.key] = record

    def close(self) -> None:
        self._log.close()


def run_stages(
    bench: Bench, stages: Iterable[Stage], results: Results, workers: int, progress: Callable[[str, int, int], None]
) -> Records:
    """Run every job that has no result yet, stage by stage; returns the records of all jobs.

    A job that meets trouble of ours is tried once more after the others of its stage; where that fails too,
    InfrastructureError: what was measured is kept. `progress` is told (part, jobs done, jobs) of a stage.
    """
    wanted: Records = {}
    for stage in stages:
        jobs = stage(wanted)
        owed = [job for job in jobs if (job.part, job.key) not in results.records]
        told = partial(_tell, progress, len(jobs))
        owed = _run(bench, owed, results, workers, told)
        if _run(bench, owed, results, workers, told):
            raise InfrastructureError(
                f"{len(owed)} measurements met trouble twice; run the same command again to go on"
            )
        wanted |= {(job.part, job.key): results.records[job.part, job.key] for job in jobs}
    return wanted


def _tell(progress: Callable[[str, int, int], None], total: int, job: Job, left: int) -> None:
    progress(job.part, total - left, total)


def _run(
    bench: Bench, jobs: list[Job], results: Results, workers: int, progress: Callable[[Job, int], None]
) -> list[Job]:
    """The jobs that met trouble of ours; any other error ends the run."""

    def measure(job: Job) -> None:
        started = time.monotonic()
        results.add(job, job.run(bench), time.monotonic() - started)

    waiting, left = iter(jobs), len(jobs)
    owed: list[Job] = []
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[None], Job] = {}
        while True:
            while len(running) < workers and (job := next(waiting, None)) is not None:
                running[pool.submit(measure, job)] = job
            if not running:
                return owed
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                job, left = running.pop(future), left - 1
                try:
                    future.result()
                except InfrastructureError as error:
                    print(f"{job.part} {job.key}: {error}", file=sys.stderr)
                    owed.append(job)
                progress(job, left)
