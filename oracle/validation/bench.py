"""What all measurements share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oracle.judge import Judge, Limits
from oracle.reference import ReferenceCache
from oracle.runner import Runner
from oracle.schema import Task
from oracle.worker.protocol import Backend

# A corpus kernel needs well under a second a call; a mutant that loops is not waited for as long as a stranger's kernel.
LIMITS = Limits(call_seconds=20.0, total_seconds=180.0)


class Bench:
    """An open backend, the tasks by id, and one cache of references for every job. Thread-safe."""

    def __init__(self, backend: Backend, tasks: Mapping[str, Task]) -> None:
        self.backend, self.tasks = backend, tasks
        self.references = ReferenceCache()
        self._judges: dict[tuple[int, str], Judge] = {}
        self._lock = threading.Lock()

    def judge(self, seed: int, domain: str) -> Judge:
        with self._lock:
            if (seed, domain) not in self._judges:
                judge = Judge(self.backend, domain=domain, seed=seed, limits=LIMITS)
                judge.references = self.references
                self._judges[seed, domain] = judge
            return self._judges[seed, domain]

    def runner(self, task_id: str, source: str) -> Runner:
        return self.judge(0, "full").runner(self.tasks[task_id], source, frozenset())


@dataclass(frozen=True)
class Job:
    """One measurement. `key` is unique within its part, and the same for the same measurement in every run."""

    part: str
    key: str
    run: Callable[[Bench], dict[str, Any]]
