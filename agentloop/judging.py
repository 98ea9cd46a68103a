"""Verdicts for attempts: judged in threads, one judgement for equal candidates, read back from records on resume."""

from __future__ import annotations

import asyncio
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import oracle.judge
from agentloop import Judge
from agentloop.config import Settings
from agentloop.errors import EpisodeFault, UsageError
from agentloop.flights import Flights
from agentloop.records import Attempt, StreamVerdict
from agentloop.store import Store
from oracle.case import Case
from oracle.errors import InfrastructureError
from oracle.inputs import build
from oracle.naive import PROFILES
from oracle.sanitizer import check_sanitizer
from oracle.schema import DOMAINS, Task
from oracle.speed import check_backend
from oracle.verdict import FAIL, Counterexample, Failure, NaiveResult, Verdict, candidate_id
from oracle.worker.protocol import Backend

SHOWING_ARMS = ("counterexample", "minimized")


def open_judge(backend: Backend, settings: Settings) -> oracle.judge.Judge:
    """The oracle as a run's settings want it. UsageError where this backend cannot do what they ask for."""
    if settings.speed:
        check_backend(backend.name)
    if settings.sanitize:
        check_sanitizer(backend.name)
    return oracle.judge.Judge(
        backend,
        tolerance=settings.tolerance,
        domain=settings.domain,
        seed=settings.seed,
        sanitize=settings.sanitize,
    )


class JudgeFailed(EpisodeFault):
    """The judge could not judge."""

    stage = "judge"


@dataclass(frozen=True)
class Question:
    """One judgement: everything within a run that its verdict depends on.

    `excluded` holds digests of inputs that were shown to the author: the score stream draws other cases for them.
    `forbidden` holds findings that fail a candidate because its prompt forbids them.
    """

    task_id: str
    task_hash: str
    candidate_id: str
    stream: str
    minimized: bool
    excluded: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class Judging:
    """Asks the judge in a pool of `workers` threads. Equal questions are judged once per run, resumes included."""

    def __init__(self, judge: Judge, store: Store, workers: int, *, seed: int, domain: str) -> None:
        self.judge, self.store, self.workers, self.seed, self.domain = judge, store, workers, seed, domain
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="judge")
        self._flights: Flights[Verdict] = Flights()
        self._known: dict[Question, Verdict | str] = {}  # a verdict, or the recorded attempt that holds it
        for attempt in store.attempts.values():
            self.recorded(attempt)

    async def verdict(self, task: Task, source: str | None, question: Question) -> Verdict:
        """Raises JudgeFailed for whatever is not the candidate's own failure, UsageError for what cannot be judged so."""
        known = self._known.get(question)
        if isinstance(known, str):
            known = restore(self.store.attempts[known], question.stream)
        return known or await self._flights.join(question, lambda: self._ask(task, source, question))

    def recorded(self, attempt: Attempt) -> None:
        """From now on, answer the attempt's questions from its record."""
        for stream, verdict in (("score", attempt.score), ("feedback", attempt.feedback_verdict)):
            if verdict is not None:
                self._known[question_of(attempt, stream, verdict)] = attempt.attempt_id

    def stop(self) -> None:
        """Start no further judgement; those under way end on their own and are not recorded."""
        self._flights.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, task: Task, source: str | None, question: Question) -> Verdict:
        if source is None:
            return self._no_code(task)
        loop = asyncio.get_running_loop()
        verdict = await loop.run_in_executor(self._pool, self._judge, task, source, question)
        self._known[question] = verdict
        return verdict

    def _judge(self, task: Task, source: str, question: Question) -> Verdict:
        try:
            return self.judge.judge(
                task,
                source,
                stream=question.stream,
                naive=question.stream == "score",
                minimized=question.minimized,
                exclude=frozenset(question.excluded),
                forbid=frozenset(question.forbidden),
            )
        except InfrastructureError as error:
            raise JudgeFailed(str(error)) from None
        except UsageError:  # asked for what cannot be, as a tolerance that a task has no figure for
            raise
        except Exception as error:  # a fault of the judge must neither fail the model nor sink the run
            message = " ".join(f"the judge broke: {type(error).__name__}: {error}".split())
            raise JudgeFailed(message, traceback.format_exc()) from error

    def _no_code(self, task: Task) -> Verdict:
        message = "the answer holds no code"
        return Verdict(
            task=task.id,
            candidate="",
            backend="",
            domain=self.domain,
            seed=self.seed,
            tolerance="",
            tiers=dict.fromkeys(DOMAINS[self.domain], FAIL),
            failures={tier: Failure("no_code", tier, message) for tier in DOMAINS[self.domain]},
            naive={profile: NaiveResult(FAIL, message) for profile in PROFILES},
        )


def ask(
    task: Task,
    source: str | None,
    stream: str,
    *,
    minimized: bool,
    excluded: frozenset[str],
    forbidden: tuple[str, ...],
) -> Question:
    name = candidate_id(source) if source is not None else ""
    return Question(task.id, task.digest, name, stream, minimized, tuple(sorted(excluded)), tuple(sorted(forbidden)))


def question_of(attempt: Attempt, stream: str, verdict: StreamVerdict) -> Question:
    """The question that a recorded verdict answers."""
    return Question(
        attempt.task,
        attempt.task_hash,
        attempt.candidate_id or "",
        stream,
        verdict.minimized,
        tuple(verdict.excluded),
        tuple(verdict.forbidden),
    )


def shown_inputs(task: Task, feedback: str, verdict: Verdict | None) -> frozenset[str]:
    """Digests of the inputs that the arm shows the author after this verdict."""
    if feedback not in SHOWING_ARMS or verdict is None or verdict.counterexample is None:
        return frozenset()
    return frozenset({build(task, Case.from_json(verdict.counterexample.case)).digest})


def to_record(verdict: Verdict, question: Question, store: Store) -> StreamVerdict:
    """The verdict as a run folder keeps it."""
    data = verdict.to_json()
    example = data["counterexample"]
    fields = {name: data[name] for name in StreamVerdict.model_fields if name in data}
    return StreamVerdict(
        **fields
        | {
            "counterexample": store.shorten(example) if example else None,
            "minimized": question.minimized,
            "excluded": list(question.excluded),
            "forbidden": list(question.forbidden),
        }
    )


def restore(attempt: Attempt, stream: str) -> Verdict | None:
    """The verdict that a record keeps, without input digests; None where the stream was not judged. Feedback is made
    from this alone, so that a resumed run words the same prompts."""
    record = attempt.score if stream == "score" else attempt.feedback_verdict
    if record is None:
        return None
    example: dict[str, Any] | None = record.counterexample
    return Verdict(
        task=attempt.task,
        candidate=attempt.candidate_id or "",
        backend=attempt.backend,
        domain=attempt.domain,
        seed=attempt.seed,
        tolerance=attempt.tolerance,
        tiers=dict(record.tiers),
        failures={tier: _failure(failure) for tier, failure in record.failures.items()},
        cases_run=record.cases_run,
        cases_failed=dict(record.cases_failed),
        naive={name: NaiveResult(**result) for name, result in attempt.naive.items()} if stream == "score" else {},
        counterexample=Counterexample(**example) if example else None,
        notes=list(record.notes),
        sanitizer=record.sanitizer,
        not_exercised=list(record.not_exercised),
        seconds=record.seconds,
        executions=record.executions,
    )


def _failure(record: dict[str, Any]) -> Failure:
    return Failure(record["kind"], record["tier"], record["message"], record.get("detail", ""))
