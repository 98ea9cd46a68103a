"""The compile gate: what only the compiler refuses, found on a machine without a GPU.

For candidates that would pass on the interpreter: their host code runs once more, in contained processes of a backend of
its own (`Backend.compiler`), where each launch compiles for sm_90 and runs nothing (`oracle.compile_gate.compiling`). As
all that a candidate's process says, a refusal may fail it; silence passes nothing.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

from oracle.clock import spending
from oracle.errors import InfrastructureError
from oracle.inputs import Inputs
from oracle.worker.protocol import CRASHED, MEMORY, RETURNED, TIMEOUT, Backend, Call, Outcome, Session

REFUSED, TROUBLE, UNSEEN = "compile_error", "compile_trouble", "compile_unseen"  # kinds of findings of its processes
CAUGHT = "compile_caught"  # the same call launched a kernel that compiles after one that was refused
SECONDS = 20.0  # for all calls of one candidate
CONFIGURATIONS = 4  # autotune configurations compiled, at most


@dataclass(frozen=True)
class Answer:
    """What the compiler says of the launches of one call. `refusal`: one line, or "". `unjudged`: why it may be right
    though it cannot be run here: the kernel needs an API of another supported Triton version, or the candidate goes on
    without a kernel that is refused. `unseen`: launches that were not compiled, and why."""

    refusal: str = ""
    unjudged: str = ""
    unseen: str = ""


class Gate:
    """Asks the compiler about one candidate's calls; calls whose arguments differ in their values alone are asked once.

    `answers` holds what was asked before, and may be kept for further gates of the same source. On a backend that
    compiles anyway nothing is asked, and nothing is refused.
    """

    def __init__(
        self, backend: Backend, source: str, entry: str, answers: dict[str, Answer], seconds: float = SECONDS
    ) -> None:
        self._backend, self._source, self._entry = backend, source, entry
        self._session: Session | None = None
        self._over = ""  # why nothing more can be compiled
        self.answers, self.left = answers, seconds

    def close(self) -> None:
        """Kill the compiling process, if any. Safe to call twice."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def ask(self, inputs: Inputs) -> Answer:
        """Compile what the candidate launches for these arguments. Our own trouble makes the answer `unseen`."""
        key = signature(inputs)
        known = self.answers.get(key)
        if known is None:
            with spending("compile_gate"):
                known = self._answer(inputs.call())
            if not self._over:
                self.answers[key] = known
        return known

    def _answer(self, call: Call) -> Answer:
        config, configs, answer = 0, 1, Answer()
        while config < min(configs, CONFIGURATIONS) and not answer.refusal and not answer.unjudged:
            outcome = None if self._over else self._call(replace(call, config=config))
            if outcome is None:
                return replace(answer, unseen=self._over)
            answer = _joined(answer, outcome)
            configs = max(configs, outcome.configs)
            config += 1
        return answer

    def _call(self, call: Call) -> Outcome | None:
        """One call within the time that is left; None, and nothing is asked any more, where that ends it."""
        if self.left <= 0:
            self._over = "the time for compiling was used up"
            return None
        try:
            if self._session is None:
                compiler = self._backend.compiler()
                if compiler is None:
                    return Outcome(RETURNED)
                self._session = compiler.open(self._source, self._entry)
            started = time.monotonic()
            outcome = self._session.call(call, timeout=self.left)
        except InfrastructureError as error:
            self._over = f"the compiler could not be asked: {error}"
            return None
        self.left -= time.monotonic() - started
        if outcome.status in (TIMEOUT, MEMORY, CRASHED):
            reasons = {TIMEOUT: "a kernel took too long to compile", MEMORY: "a kernel took too much memory to compile"}
            self._over = reasons.get(outcome.status, f"the compiling process ended: {outcome.message}")
            return None
        return outcome


def signature(inputs: Inputs) -> str:
    """A call but for the values in its tensors."""
    tensors = [[t.name, t.dtype, t.shape, t.strides, t.offset] for t in inputs.tensors]
    return json.dumps([inputs.form.name, tensors, dict(inputs.keywords)], sort_keys=True)


def _joined(answer: Answer, outcome: Outcome) -> Answer:
    found: dict[str, str] = {}
    for finding in outcome.findings:
        found.setdefault(finding.kind, finding.message)
    elsewhere = outcome.message if outcome.error_kind == "unsupported" else ""
    if outcome.status == RETURNED and CAUGHT in found:
        elsewhere = f"{found.pop(REFUSED)}; the candidate goes on without it, which cannot be run here"
    return Answer(
        refusal=answer.refusal or found.get(REFUSED, ""),
        unjudged=answer.unjudged or elsewhere,
        unseen=answer.unseen or found.get(UNSEEN, "") or found.get(TROUBLE, ""),
    )
