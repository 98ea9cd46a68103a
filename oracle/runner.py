"""Runs cases of one candidate in sessions of its own and turns each outcome into a trial: passed, or failed and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from oracle.case import Case
from oracle.clock import spending
from oracle.compare import Comparison, compare
from oracle.compile_gate import Answer, Gate
from oracle.inputs import Inputs, build, renewed
from oracle.reference import Expected, ReferenceCache
from oracle.schema import Task
from oracle.tolerance import Policy
from oracle.verdict import FAILURE_KINDS, Failure
from oracle.worker.protocol import CRASHED, MEMORY, RAISED, RETURNED, TIMEOUT, Backend, Call, Outcome, Session

PATIENCE = (
    4  # on cuda, shared with other candidates, a call out of time or memory is repeated with so many times the limit
)

# Findings of the candidate's process that fail it as they stand; `host_compute` only where the prompt forbids it.
FATAL_FINDINGS = frozenset({"tampering", "out_of_bounds", "late_write", "aliased_output", "memory_limit"})


@dataclass(frozen=True)
class Trial:
    """One execution of one case. `failure` None: nothing wrong was seen. `unjudged`: why this backend cannot say."""

    case: Case
    inputs: Inputs
    expected: Expected
    outcome: Outcome
    comparison: Comparison | None
    failure: Failure | None
    unjudged: str = ""

    @property
    def empty(self) -> bool:
        """Whether some input has no element: then no kernel launch is needed."""
        return any(0 in tensor.shape for tensor in self.inputs.tensors)

    @property
    def output_bytes(self) -> tuple[bytes, ...]:
        return tuple(output.data for output in self.outcome.outputs)


class Runner:
    """Executes cases of one source, reopening the session when it died. Use as a context manager."""

    def __init__(
        self,
        backend: Backend,
        task: Task,
        source: str,
        *,
        references: ReferenceCache,
        tolerance: Policy,
        forbid: frozenset[str] = frozenset(),
        timeout: float = 30.0,
        noop: bool = False,
        answers: dict[str, Answer] | None = None,
    ) -> None:
        """`answers`: what the compiler has said of this source's calls, kept by whoever asks more than once."""
        self.backend, self.task, self.source = backend, task, source
        self.references, self.tolerance, self.forbid = references, tolerance, forbid
        self.timeout, self.noop = timeout, noop
        self.executions = 0
        self.history: list[Case] = []  # calls the live session has seen, in order
        self.earlier: tuple[Case, ...] = ()  # those that the session of the last call had seen before it
        self._session: Session | None = None
        self._answers = {} if answers is None else answers
        self._gate: Gate | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the session, if any; the next run opens a fresh one."""
        if self._session is not None:
            self._session.close()
        if self._gate is not None:
            self._gate.close()
        self._session = self._gate = None
        self.history = []

    def fresh(self) -> Runner:
        """Start from a new process at the next run."""
        self.close()
        return self

    def run(
        self,
        case: Case,
        *,
        reverse: bool = False,
        poison: int = 0,
        fill_lanes: bool = False,
        config: int = 0,
        watched: bool = False,
        held: bool = False,
    ) -> Trial:
        """Execute one case and judge it. Raises InfrastructureError for our own trouble, never for the candidate's."""
        inputs, expected = self._prepared(case)
        call = inputs.call(reverse=reverse, poison=poison, fill_lanes=fill_lanes)
        call = replace(call, config=config, watched=watched, held=held)
        outcome = self._call(case, call, self.timeout)
        if outcome.status in (TIMEOUT, MEMORY) and self.backend.name == "cuda" and not self.noop:
            outcome = self._call(case, call, PATIENCE * self.timeout)
        return self._examine(case, inputs, expected, outcome)

    def repeat(self, inputs: Inputs, offsets: Sequence[int]) -> Trial:
        """Repeat one call and time it (`Call.timed`); the trial judges what the last repetition made returned."""
        outcome = self._call(inputs.case, replace(inputs.call(), timed=tuple(offsets)), self.timeout)
        made = len(outcome.times.event_us) if outcome.times else 1
        last = renewed(inputs, offsets[min(made, len(offsets)) - 1])
        return self._examine(inputs.case, last, self.references.get(self.task, last), outcome)

    def compile(self, case: Case) -> Trial:
        """Ask the compiler about a case (`oracle.compile_gate`): the trial fails if it refuses a kernel. Nothing is asked
        on a backend that compiles anyway, and what the compiler could not be asked is no failure."""
        inputs, expected = self._prepared(case)
        answer = self.ask_compiler(inputs)
        self.executions += 1
        failure = Failure("compile_error", case.tier, answer.refusal) if answer.refusal else None
        outcome = Outcome(RAISED, error_kind="compile_error", message=answer.refusal)
        return Trial(case, inputs, expected, outcome, None, failure, unjudged=answer.unjudged or answer.unseen)

    def ask_compiler(self, inputs: Inputs) -> Answer:
        if self._gate is None:
            self._gate = Gate(self.backend, self.source, self.task.entry, self._answers)
        return self._gate.ask(inputs)

    def _prepared(self, case: Case) -> tuple[Inputs, Expected]:
        with spending("inputs"):
            inputs = build(self.task, case)
        with spending("reference"):
            return inputs, self.references.get(self.task, inputs)

    def _call(self, case: Case, call: Call, timeout: float) -> Outcome:
        if self._session is None:
            self._session = self.backend.open(self.source, self.task.entry, noop=self.noop)
        self.earlier = tuple(self.history)
        self.history.append(case)
        outcome = self._session.call(call, timeout=timeout)
        self.executions += 1
        if outcome.status in (TIMEOUT, MEMORY, CRASHED):
            self.close()
        return outcome

    def _examine(self, case: Case, inputs: Inputs, expected: Expected, outcome: Outcome) -> Trial:
        if outcome.error_kind == "unsupported":
            return Trial(case, inputs, expected, outcome, None, None, unjudged=outcome.message)
        comparison = None
        failure = self._tampering(outcome, case.tier) or ended_badly(outcome, case.tier)
        failure = failure or self._finding(outcome, case.tier)
        if outcome.status == RETURNED:
            with spending("compare"):
                comparison = compare(expected, outcome, self.task, inputs, self.tolerance)
            if failure is None and comparison.kind is not None:
                failure = Failure(comparison.kind, case.tier, comparison.message)
        trial = Trial(case, inputs, expected, outcome, comparison, failure)
        if failure is None and outcome.launches == 0 and not trial.empty and not expected.constant():
            return replace(trial, failure=no_launch(case.tier))
        return trial

    def _tampering(self, outcome: Outcome, tier: str) -> Failure | None:
        """What was tried counts, however the call ended: a refusal often ends it."""
        found = next((finding for finding in outcome.findings if finding.kind == "tampering"), None)
        return Failure("tampering", tier, found.message, outcome.traceback) if found else None

    def _finding(self, outcome: Outcome, tier: str) -> Failure | None:
        if outcome.late:
            return Failure("late_write", tier, "an output still changed after the call returned")
        for finding in outcome.findings:
            if finding.kind in FATAL_FINDINGS or finding.kind in self.forbid:
                return Failure(finding.kind, tier, finding.message)
        return None


def no_launch(tier: str) -> Failure:
    return Failure("no_kernel_launch", tier, "the function returned a result without launching a Triton kernel")


def ended_badly(outcome: Outcome, tier: str) -> Failure | None:
    """The failure of a call that did not return, or None. An unknown error kind counts as a launch error."""
    if outcome.status == RETURNED:
        return None
    if outcome.status == RAISED:
        kind = outcome.error_kind if outcome.error_kind in FAILURE_KINDS else "launch_error"
        return Failure(kind, tier, outcome.message, outcome.traceback)
    kind = {TIMEOUT: "timeout", MEMORY: "memory_limit"}.get(outcome.status, "crashed")
    return Failure(kind, tier, outcome.message or f"the call ended with {outcome.status}", outcome.traceback)
