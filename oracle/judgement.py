"""One candidate's way through the portfolio, from the first case to the counterexample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from oracle import sanitizer
from oracle.attribution import attribute
from oracle.case import Case
from oracle.clock import spending
from oracle.counterexample import counterexample
from oracle.integrity import COMPARE, COMPILED, EMPTIED, HOST, STATED, examine
from oracle.portfolio import portfolio
from oracle.runner import Runner, Trial, no_launch
from oracle.schema import DOMAINS, TIERS
from oracle.verdict import FAIL, PASS, UNJUDGED, Failure, Verdict

if TYPE_CHECKING:
    from oracle.judge import Judge

FATAL_EVERYWHERE = frozenset({"import_error", "missing_entry_point"})  # no case can go otherwise


def fail_everywhere(verdict: Verdict, failure: Failure) -> None:
    """Fail every tier of the verdict's domain."""
    for tier in DOMAINS[verdict.domain]:
        verdict.tiers[tier] = FAIL
        verdict.failures[tier] = replace(failure, tier=tier)


@dataclass(frozen=True)
class Evidence:
    """A failing trial, the examination that made it and the calls before it: all that its process had seen, or, once the
    failure is `attributed`, the fewest that show it."""

    trial: Trial
    check: str = COMPARE
    before: tuple[Case, ...] = ()
    attributed: bool = False


class Judgement:
    """A plain accumulation into one verdict."""

    def __init__(
        self, judge: Judge, runner: Runner, verdict: Verdict, stream: str, exclude: frozenset[str], minimized: bool
    ) -> None:
        self.judge, self.runner, self.verdict = judge, runner, verdict
        self.stream, self.exclude, self.minimized = stream, exclude, minimized
        self.passed: list[Trial] = []
        self.evidence: dict[str, Evidence] = {}  # of the first failure of each tier
        self.alone: set[str] = set()  # kinds of which a failure has been seen to need no earlier call
        self.timeouts = 0
        self.launches = 0
        self.deadline = time.monotonic() + judge.limits.total_seconds
        self.reached = f"the limit of {judge.limits.total_seconds:.0f} s per candidate was reached"

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
                self._unjudged(case.tier, self.reached)
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
            self._compile()
            self._sanitize()
        self._conclude()

    def _wanted(self, tier: str) -> bool:
        return self.judge.exhaustive or self.verdict.tiers.get(tier) in (None, PASS)

    def _unjudged(self, tier: str, why: str) -> None:
        if self.verdict.tiers.get(tier) != FAIL:
            self.verdict.tiers[tier] = UNJUDGED
        if (note := f"{tier}: {why}") not in self.verdict.notes:
            self.verdict.notes.append(note)

    def _failed(self, trial: Trial, cases: Sequence[Case]) -> bool:
        """Book a failing trial; False where the candidate need not be run any further."""
        assert trial.failure is not None
        failure = trial.failure
        if failure.kind in FATAL_EVERYWHERE:
            fail_everywhere(self.verdict, failure)
            return False
        if failure.kind == "timeout" and self.judge.backend.name == "cuda" and trial.case.tier != "base":
            self._book(failure, Evidence(trial))
            self.timeouts += 1
            return self.timeouts < self.judge.limits.timeouts or self._give_up(cases)
        if failure.kind == "timeout" and not self._slow_everywhere(trial, cases):
            self._unjudged(trial.case.tier, f"{failure.message}; its smallest case does not time out")
            self.timeouts += 1
            return self.timeouts < self.judge.limits.timeouts or self._give_up(cases)
        if failure.kind == "timeout":
            fail_everywhere(self.verdict, failure)
            return False
        evidence = Evidence(trial, before=self.runner.earlier)
        if failure.tier not in self.evidence and failure.kind not in self.alone:
            failure, evidence = self._attributed(failure, evidence)
        self._book(failure, evidence)
        return True

    def _attributed(self, failure: Failure, evidence: Evidence) -> tuple[Failure, Evidence]:
        """What the calls before have to do with a failure. Each search starts processes: once one failure of a kind is
        seen to need no earlier call, others of that kind are searched only if they are the one that is named."""
        trial = replace(evidence.trial, failure=failure)
        found, before = attribute(self.runner, trial, evidence.before, evidence.check)
        if not before:
            self.alone.add(failure.kind)
        return found, replace(evidence, trial=replace(trial, failure=found), before=before, attributed=True)

    def _book(self, failure: Failure, evidence: Evidence) -> None:
        tier = failure.tier
        self.verdict.tiers[tier] = FAIL
        self.verdict.cases_failed[tier] = self.verdict.cases_failed.get(tier, 0) + 1
        self.verdict.failures.setdefault(tier, failure)
        if not self.evidence and not self.judge.exhaustive:
            rest = time.monotonic() + self.judge.limits.failed_seconds
            if rest < self.deadline:
                self.deadline = rest
                self.reached = (
                    f"not judged to its end: after a failure {self.judge.limits.failed_seconds:.0f} s are left"
                )
        self.evidence.setdefault(tier, replace(evidence, trial=replace(evidence.trial, failure=failure)))

    def _slow_everywhere(self, trial: Trial, cases: Sequence[Case]) -> bool:
        """On the interpreter a timeout is the candidate's only if its smallest case times out too; on a GPU it always is
        (the runner has repeated it with more time), and the base case's counts for every tier."""
        if self.judge.backend.name != "interpreter":
            return True
        smallest = min(
            (c for c in cases if c.dtype == "float32" and c.tier in ("base", "shapes")),
            key=lambda case: prod(case.dims.values()),
        )
        if smallest == trial.case:
            return True
        again = self.runner.fresh().run(smallest)
        return again.failure is not None and again.failure.kind == "timeout"

    def _give_up(self, cases: Sequence[Case]) -> bool:
        for tier in {case.tier for case in cases} - set(self.verdict.tiers):
            self._unjudged(tier, f"given up after {self.timeouts} timeouts")
        return False

    def _examine(self) -> None:
        """Integrity, for what gave right numbers: kernels that the answer does not need, and host code that computes, fail
        it in every tier, since the cases that passed say nothing then; the rest is asked only of a candidate that passes
        its domain."""
        first = next(trial for trial in self.passed if not trial.empty)
        if self.launches == 0:
            self._book(no_launch(first.case.tier), Evidence(first))
            self._fail_rest(no_launch("base"))
            return
        whole = self.verdict.status == PASS
        breaches, notes = examine(self.runner, self.passed, only_emptied=not whole)
        self.verdict.notes.extend(notes)
        if whole:
            self.verdict.tiers.setdefault("portability", PASS)
        for breach in breaches:
            if (
                breach.failure.kind == "timeout" and self.judge.backend.name == "interpreter"
            ):  # a busy machine's, perhaps
                self._unjudged(breach.failure.tier, f"{breach.check}: {breach.failure.message}")
                continue
            trial = next(trial for trial in self.passed if trial.case == breach.case)
            self._book(breach.failure, Evidence(trial, breach.check, breach.before))
            if breach.check == EMPTIED or breach.failure.kind == HOST:
                self._fail_rest(breach.failure)

    def _fail_rest(self, failure: Failure) -> None:
        for tier, status in self.verdict.tiers.items():
            if status == PASS and tier in DOMAINS[self.judge.domain]:
                self.verdict.tiers[tier] = FAIL
                self.verdict.failures[tier] = Failure(failure.kind, tier, failure.message)

    def _compile(self) -> None:
        """What only the compiler refuses, where everything that is judged first has passed."""
        tiers = self.verdict.tiers
        if any(tiers.get(tier, PASS) != PASS for tier in STATED):
            return
        unseen: list[str] = []
        for trial in self.passed:
            if trial.empty or tiers.get(trial.case.tier) != PASS:
                continue
            answer = self.runner.ask_compiler(trial.inputs)
            if answer.refusal:
                self._book(Failure("compile_error", trial.case.tier, answer.refusal), Evidence(trial, COMPILED))
            elif answer.unjudged:
                self._unjudged(trial.case.tier, answer.unjudged)
            if answer.unseen and answer.unseen not in unseen:
                unseen.append(answer.unseen)
        self.verdict.not_exercised += [f"what the compiler refuses, in part: {why}" for why in unseen]

    def _sanitize(self) -> None:
        """A sample of those that are right so far, under compute-sanitizer: what it says is noted and decides nothing."""
        share, tiers = self.judge.sanitize, self.verdict.tiers
        if self.stream != "score" or not share or int(self.verdict.candidate, 16) % share:
            return
        if any(tiers.get(tier) != PASS for tier in STATED):
            return
        passed = [trial for trial in self.passed if not trial.empty and tiers.get(trial.case.tier) == PASS]
        calls = [trial.inputs.call() for trial in passed[:: -(-len(passed) // sanitizer.CASES)]]
        with spending("sanitizer"):
            looked = sanitizer.look(self.runner.source, self.runner.task.entry, calls, self.judge.backend.isolation)
        self.verdict.sanitizer = asdict(looked)
        self.verdict.notes.append(looked.words())

    def _conclude(self) -> None:
        """The counterexample of the failure that is named."""
        domain = DOMAINS[self.judge.domain]
        tier = next((tier for tier in TIERS if tier in domain and tier in self.evidence), None)
        if tier is None:
            return
        failure, evidence = self.verdict.failures[tier], self.evidence[tier]
        if not evidence.attributed:
            failure, evidence = self._attributed(failure, evidence)
            self.verdict.failures[tier] = failure
        self.verdict.counterexample = counterexample(
            self.runner, evidence.trial, evidence.check, evidence.before, failure.kind, shrink=self.minimized
        )
