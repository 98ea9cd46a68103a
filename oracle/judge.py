"""The judge: cases → run → compare with the fp64 reference → verdict, for one candidate at a time.

`Judge.judge` is thread-safe: several candidates may be judged side by side over one backend and one reference cache.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from oracle import clock
from oracle.case import Replay
from oracle.compile_gate import Answer
from oracle.counterexample import diagnosis, shown_inputs, shown_outputs
from oracle.errors import WorkerLost
from oracle.integrity import run_check
from oracle.judgement import Judgement, fail_everywhere
from oracle.naive import PROFILES, run_naive
from oracle.reference import ReferenceCache
from oracle.runner import Runner, Trial
from oracle.schema import Task
from oracle.static import check_source
from oracle.tolerance import policy
from oracle.verdict import FAIL, NaiveResult, Verdict, candidate_id
from oracle.worker.protocol import Backend

__all__ = ["Judge", "Limits", "diagnosis", "shown_inputs", "shown_outputs"]

KEPT = 256  # candidates whose answers from the compiler are kept
ALWAYS_FORBIDDEN = frozenset({"host_compute"})


@dataclass(frozen=True)
class Limits:
    """Seconds that a call, a whole candidate and what is left of it after its first failure may take, and timeouts seen
    before it is given up."""

    call_seconds: float = 30.0
    total_seconds: float = 600.0
    failed_seconds: float = 10.0
    timeouts: int = 2


class Judge:
    """Settings shared by all candidates of a run.

    exhaustive     run every case even after a tier has failed (counts of failing cases; `validate` needs them).
    forbid         findings that fail a candidate because its prompt forbids them (`host_compute`).
    sanitize       one in so many of the candidates that pass the stated tiers is also run under compute-sanitizer
                   (`oracle.sanitizer`; cuda only), chosen by its digest; 0: none.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        tolerance: str = "derived",
        domain: str = "full",
        seed: int = 0,
        limit: int = 40,
        exhaustive: bool = False,
        limits: Limits | None = None,
        sanitize: int = 0,
    ) -> None:
        self.backend = backend
        self.tolerance = policy(tolerance, backend=backend.name)
        self.domain, self.seed, self.limit, self.exhaustive = domain, seed, limit, exhaustive
        self.limits = limits or Limits()
        self.sanitize = sanitize
        self.references = ReferenceCache()
        self._answers: OrderedDict[str, dict[str, Answer]] = OrderedDict()  # the compiler's, by candidate
        self._lock = threading.Lock()

    def judge(
        self,
        task: Task,
        source: str,
        *,
        stream: str = "score",
        naive: bool = True,
        minimized: bool = True,
        exclude: frozenset[str] = frozenset(),
        forbid: frozenset[str] = ALWAYS_FORBIDDEN,
    ) -> Verdict:
        """Judge one source. Raises InfrastructureError for our own trouble, never for the candidate's."""
        try:
            return self._judge(task, source, stream, naive, minimized, exclude, forbid)
        except WorkerLost:  # perhaps under another candidate; a judgement can be repeated
            return self._judge(task, source, stream, naive, minimized, exclude, forbid)

    def _judge(
        self,
        task: Task,
        source: str,
        stream: str,
        naive: bool,
        minimized: bool,
        exclude: frozenset[str],
        forbid: frozenset[str],
    ) -> Verdict:
        started = time.monotonic()
        clock.taken()
        verdict = Verdict(
            task=task.id,
            candidate=candidate_id(source),
            backend=self.backend.name,
            domain=self.domain,
            seed=self.seed,
            tolerance=self.tolerance.name,
            isolation=list(self.backend.isolation),
            not_exercised=list(self.backend.not_exercised),
        )
        broken = check_source(source)
        if broken is not None:
            fail_everywhere(verdict, broken)
            if naive:
                verdict.naive = {name: NaiveResult(FAIL, broken.message) for name in PROFILES}
        else:
            if naive:
                verdict.naive = run_naive(self.backend, task, source, seed=self.seed)
            with self.runner(task, source, forbid) as runner:
                Judgement(self, runner, verdict, stream, exclude, minimized).decide()
                verdict.executions = runner.executions
        verdict.seconds = time.monotonic() - started
        verdict.spent, verdict.within = clock.taken()
        return verdict

    def replay(self, task: Task, source: str, replay: Replay, forbid: frozenset[str] = ALWAYS_FORBIDDEN) -> Trial:
        """Execute a token's calls in a fresh process and return the trial of its case."""
        with self.runner(task, source, forbid) as runner:
            for case in replay.before:
                runner.run(case)
            return run_check(runner, replay.case, replay.check)

    def runner(
        self, task: Task, source: str, forbid: frozenset[str], references: ReferenceCache | None = None
    ) -> Runner:
        """A candidate's runner under the judge's settings; `references` in place of the judge's own."""
        return Runner(
            self.backend,
            task,
            source,
            references=references or self.references,
            tolerance=self.tolerance,
            forbid=forbid,
            timeout=self.limits.call_seconds,
            answers=self._answered(task, source),
        )

    def _answered(self, task: Task, source: str) -> dict[str, Answer]:
        """What the compiler has said of a candidate so far: it is asked again for another stream of cases."""
        with self._lock:
            answers = self._answers.setdefault(f"{task.id} {candidate_id(source)}", {})
            self._answers.move_to_end(f"{task.id} {candidate_id(source)}")
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
            return answers
