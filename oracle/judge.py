"""The judge: cases → run → compare with the fp64 reference → verdict, for one candidate at a time.

`Judge.judge` is thread-safe: several candidates may be judged side by side over one backend and one reference cache.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oracle import clock
from oracle.case import Case, Replay
from oracle.diagnose import diagnose
from oracle.errors import WorkerLost
from oracle.inputs import Inputs
from oracle.integrity import COMPARE, attribute, examine, run_check
from oracle.minimize import NotFailing, minimize
from oracle.naive import PROFILES, run_naive
from oracle.portfolio import portfolio
from oracle.reference import ReferenceCache
from oracle.runner import Runner, Trial, no_launch
from oracle.schema import DOMAINS, Task
from oracle.static import check_source
from oracle.tolerance import policy
from oracle.verdict import FAIL, PASS, UNJUDGED, Counterexample, Failure, NaiveResult, Verdict, candidate_id
from oracle.worker.protocol import Backend

VALUES_SHOWN = 64  # elements of an input or output shown in full; larger ones show their worst elements only
FATAL_EVERYWHERE = frozenset({"import_error", "missing_entry_point"})  # no case can go otherwise
ALWAYS_FORBIDDEN = frozenset({"host_compute"})


@dataclass(frozen=True)
class Limits:
    """Seconds a call and a whole candidate may take, and timeouts seen before a candidate is given up."""

    call_seconds: float = 30.0
    total_seconds: float = 600.0
    timeouts: int = 2


class Judge:
    """Settings shared by all candidates of a run.

    exhaustive     run every case even after a tier has failed (counts of failing cases; `validate` needs them).
    forbid         findings that fail a candidate because its prompt forbids them (`host_compute`).
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
    ) -> None:
        self.backend = backend
        self.tolerance = policy(tolerance, backend=backend.name)
        self.domain, self.seed, self.limit, self.exhaustive = domain, seed, limit, exhaustive
        self.limits = limits or Limits()
        self.references = ReferenceCache()

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
            self._fail_everywhere(verdict, broken)
            if naive:
                verdict.naive = {name: NaiveResult(FAIL, broken.message) for name in PROFILES}
        else:
            if naive:
                verdict.naive = run_naive(self.backend, task, source, seed=self.seed)
            with self._runner(task, source, forbid) as runner:
                _Judgement(self, runner, verdict, stream, exclude, minimized).decide()
                verdict.executions = runner.executions
        verdict.seconds = time.monotonic() - started
        verdict.spent, verdict.within = clock.taken()
        return verdict

    def replay(self, task: Task, source: str, replay: Replay, forbid: frozenset[str] = ALWAYS_FORBIDDEN) -> Trial:
        """Execute a token's calls in a fresh process and return the trial of its case."""
        with self._runner(task, source, forbid) as runner:
            for case in replay.before:
                runner.run(case)
            return run_check(runner, replay.case, replay.check)

    def _runner(self, task: Task, source: str, forbid: frozenset[str]) -> Runner:
        return Runner(
            self.backend,
            task,
            source,
            references=self.references,
            tolerance=self.tolerance,
            forbid=forbid,
            timeout=self.limits.call_seconds,
        )

    def _fail_everywhere(self, verdict: Verdict, failure: Failure) -> None:
        for tier in DOMAINS[self.domain]:
            verdict.tiers[tier] = FAIL
            verdict.failures[tier] = Failure(failure.kind, tier, failure.message, failure.detail)


class _Judgement:
    """One candidate's way through the portfolio; a plain accumulation into its verdict."""

    def __init__(
        self, judge: Judge, runner: Runner, verdict: Verdict, stream: str, exclude: frozenset[str], minimized: bool
    ) -> None:
        self.judge, self.runner, self.verdict = judge, runner, verdict
        self.stream, self.exclude, self.minimized = stream, exclude, minimized
        self.passed: list[Trial] = []
        self.first: tuple[Trial, str, tuple[Case, ...]] | None = None  # first failing trial, its check, calls before
        self.timeouts = 0
        self.launches = 0
        self.deadline = time.monotonic() + judge.limits.total_seconds

    def decide(self) -> None:
        judge, verdict = self.judge, self.verdict
        cases = portfolio(
            self.runner.task,
            domain=judge.domain,
            seed=judge.seed,
            stream=self.stream,
            limit=judge.limit,
            exclude=self.exclude,
        )
        for case in cases:
            if not self._wanted(case.tier):
                continue
            if time.monotonic() > self.deadline:
                self._unjudged(case.tier, f"the limit of {judge.limits.total_seconds:.0f} s per candidate was reached")
                continue
            trial = self.runner.run(case)
            verdict.cases_run += 1
            verdict.input_digests.append(trial.inputs.digest)
            self.launches += trial.outcome.launches
            if trial.unjudged:
                self._unjudged(case.tier, trial.unjudged)
            elif trial.failure is None:
                verdict.tiers.setdefault(case.tier, PASS)
                self.passed.append(trial)
            elif not self._failed(trial, cases):
                return self._conclude()
        if any(not trial.empty for trial in self.passed):
            self._examine()
        self._conclude()

    def _wanted(self, tier: str) -> bool:
        return self.judge.exhaustive or self.verdict.tiers.get(tier) in (None, PASS)

    def _unjudged(self, tier: str, why: str) -> None:
        self.verdict.tiers[tier] = UNJUDGED
        if (note := f"{tier}: {why}") not in self.verdict.notes:
            self.verdict.notes.append(note)

    def _failed(self, trial: Trial, cases: Sequence[Case]) -> bool:
        """Book a failing trial; False where the candidate need not be run any further."""
        assert trial.failure is not None
        failure = trial.failure
        before: tuple[Case, ...] = ()
        if failure.kind in FATAL_EVERYWHERE:
            self.judge._fail_everywhere(self.verdict, failure)
            return False
        if failure.kind == "timeout" and self.judge.backend.name == "cuda" and trial.case.tier != "base":
            self._book(failure, trial, COMPARE, ())
            self.timeouts += 1
            return self.timeouts < self.judge.limits.timeouts or self._give_up(cases)
        if failure.kind == "timeout" and not self._slow_everywhere(trial, cases):
            self._unjudged(trial.case.tier, f"{failure.message}; its smallest case does not time out")
            self.timeouts += 1
            return self.timeouts < self.judge.limits.timeouts or self._give_up(cases)
        if failure.kind == "timeout":
            self.judge._fail_everywhere(self.verdict, failure)
            return False
        if not failure.loud and self.passed:
            failure, before = attribute(self.runner, trial, self.runner.run)
        self._book(failure, trial, COMPARE, tuple(before))
        return True

    def _book(self, failure: Failure, trial: Trial, check: str, before: tuple[Case, ...]) -> None:
        tier = failure.tier
        self.verdict.tiers[tier] = FAIL
        self.verdict.cases_failed[tier] = self.verdict.cases_failed.get(tier, 0) + 1
        self.verdict.failures.setdefault(tier, failure)
        outside = tier not in DOMAINS[self.judge.domain]
        if self.first is None and not outside:
            self.first = (trial, check, before)

    def _slow_everywhere(self, trial: Trial, cases: Sequence[Case]) -> bool:
        """On the interpreter a timeout is the candidate's only if its smallest case times out too; on a GPU it always is
        (the runner has repeated it with more time), and the base case's counts for every tier."""
        if self.judge.backend.name != "interpreter":
            return True
        smallest = min((c for c in cases if c.dtype == "float32" and c.tier in ("base", "shapes")), key=_size)
        if smallest == trial.case:
            return True
        again = self.runner.fresh().run(smallest)
        return again.failure is not None and again.failure.kind == "timeout"

    def _give_up(self, cases: Sequence[Case]) -> bool:
        for tier in {case.tier for case in cases} - set(self.verdict.tiers):
            self._unjudged(tier, f"given up after {self.timeouts} timeouts")
        return False

    def _examine(self) -> None:
        """Integrity, for what gave right numbers: kernels that the answer does not need fail it in every tier, since the
        cases that passed say nothing then; the rest is asked only of a candidate that passes its domain."""
        first = next(trial for trial in self.passed if not trial.empty)
        if self.launches == 0:
            self._book(no_launch(first.case.tier), first, COMPARE, ())
            self._fail_rest(no_launch("base"))
            return
        whole = self.verdict.status == PASS
        breaches, notes = examine(self.runner, self.passed, only_unused=not whole)
        self.verdict.notes.extend(notes)
        if whole:
            self.verdict.tiers.setdefault("portability", PASS)
        for breach in breaches:
            trial = next(trial for trial in self.passed if trial.case == breach.case)
            self._book(breach.failure, trial, breach.check, ())
            if breach.failure.kind == "unused_kernel":
                self._fail_rest(breach.failure)

    def _fail_rest(self, failure: Failure) -> None:
        for tier, status in self.verdict.tiers.items():
            if status == PASS and tier in DOMAINS[self.judge.domain]:
                self.verdict.tiers[tier] = FAIL
                self.verdict.failures[tier] = Failure(failure.kind, tier, failure.message)

    def _conclude(self) -> None:
        if self.first is None or self.verdict.counterexample is not None:
            return
        trial, check, before = self.first
        self.verdict.counterexample = self._counterexample(trial, check, before)

    def _counterexample(self, trial: Trial, check: str, before: tuple[Case, ...]) -> Counterexample:
        """Shrink where the case fails on its own; a failure that needs earlier calls keeps them."""
        runner, judge = self.runner, self.judge
        used = runner.executions
        found, case = trial, trial.case
        kind = self.verdict.failures[trial.case.tier].kind if trial.failure is None else trial.failure.kind
        if self.minimized and not before and kind not in ("timeout", "memory_limit", "tampering"):
            runner.fresh()

            def failing(smaller: Case) -> bool:
                again = run_check(runner, smaller, check)
                return again.failure is not None and _family(again.failure.kind) == _family(kind)

            with contextlib.suppress(NotFailing), clock.spending("minimize"):  # not failing: it is shown as found
                case = minimize(trial.case, failing, task=runner.task)
            shown = run_check(runner.fresh(), case, check)
            trial = shown if shown.failure is not None else trial
        replay = Replay(trial.case, judge.tolerance.name, judge.backend.name, check, before)
        return Counterexample(
            token=replay.token(),
            case=trial.case.to_json(),
            inputs=shown_inputs(trial.inputs),
            got=shown_outputs(trial, "got"),
            expected=shown_outputs(trial, "expected"),
            stats=dict(trial.comparison.stats) if trial.comparison else {},
            diagnosis=diagnosis(trial, runner.task),
            executions=runner.executions - used,
            original=None if found is trial else found.case.to_json(),
        )


def diagnosis(trial: Trial, task: Task) -> str | None:
    """The pattern of a numerical failure in words, or None where it is not known."""
    if trial.comparison is None or not trial.outcome.outputs:
        return None
    return diagnose(task, trial.inputs, trial.expected, trial.outcome)


def shown_inputs(inputs: Inputs) -> dict[str, Any]:
    """Each input as {"shape", "dtype", "strides", "values"}; values null where there are too many to show."""
    return {
        tensor.name: {
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "strides": list(tensor.strides),
            "values": plain(tensor.values()) if _count(tensor.shape) <= VALUES_SHOWN else None,
        }
        for tensor in inputs.tensors
    }


def shown_outputs(trial: Trial, side: str) -> list[Mapping[str, Any]]:
    """Outputs as {"shape", "dtype", "values", "worst"} for one side, "got" or "expected"."""
    worst = trial.comparison.worst if trial.comparison else []
    rows: list[Mapping[str, Any]] = []
    known: list[tuple[str, tuple[int, ...], Any]]
    if side == "got":
        known = [(o.dtype, o.shape, o) for o in trial.outcome.outputs]
    else:
        known = [(q.dtype, q.values.shape, q.values) for q in trial.expected.outputs]
    for index, (dtype, shape, output) in enumerate(known):
        values = None
        if _count(shape) <= VALUES_SHOWN:
            try:
                values = plain(output.array() if side == "got" else output)
            except (KeyError, ValueError):
                values = None
        rows.append(
            {
                "shape": list(shape),
                "dtype": dtype,
                "values": values,
                "worst": [{"index": w["index"], side: w[side]} for w in worst if w.get("output", 0) == index],
            }
        )
    return rows


def plain(array: Any) -> list[Any]:
    """Flat list of JSON values; non-finite floats as "nan", "inf", "-inf"."""
    flat = array.reshape(-1)
    if flat.dtype.kind in "iub":
        return [value.item() for value in flat]
    numbers = [float(value) for value in flat]
    return [number if number - number == 0 else str(number) for number in numbers]


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _size(case: Case) -> int:
    return _count(list(case.dims.values()))


def _family(kind: str) -> str:
    """Kinds that one fault may show as on different inputs shrink together."""
    wrong_numbers = ("numerical_mismatch", "nonfinite_mismatch", "unwritten_output")
    return "wrong_numbers" if kind in wrong_numbers else kind
