"""Whether a failure needs the calls before it, and which."""

from __future__ import annotations

import time
from dataclasses import replace

from oracle.case import Case
from oracle.integrity import COMPARE, run_check
from oracle.runner import Runner, Trial
from oracle.verdict import Failure

CALLS = 400  # most calls made to find the shortest sequence
SECONDS = 10.0  # and the longest that is tried

ALONE = ("timeout", "memory_limit", "tampering")  # slow or harmful to run again, and their processes are fresh anyway


def attribute(
    runner: Runner, trial: Trial, before: tuple[Case, ...], check: str = COMPARE
) -> tuple[Failure, tuple[Case, ...]]:
    """The failure of a trial that `check` made after the calls `before` it in the same process, and the shortest sequence
    of them that shows it.

    A case that fails in a fresh process stands alone. Otherwise the calls are made again: where not even all of them
    show a silent failure it is `nondeterministic`; where the output repeats one of theirs it is `stale_result`; else the
    failure keeps its kind, with the sequence beside it.
    """
    failure = trial.failure
    assert failure is not None
    search = _Search(runner, trial.case, check)
    if not before or failure.kind in ALONE or search.shows(()):
        return failure, ()
    if not search.shows(before):
        if failure.loud or check != COMPARE:
            return replace(failure, message=f"not shown again by the same calls: {failure.message}"), before
        message = f"a fresh process gives the right result on the same input; before: {failure.message}"
        return Failure("nondeterministic", failure.tier, message), before
    sequence = search.shortest(before)
    kind = "stale_result" if search.stale and check == COMPARE and not failure.loud else failure.kind
    calls = f"{len(sequence)} earlier call{'s' if len(sequence) > 1 else ''}"
    return replace(failure, kind=kind, message=f"only after {calls}: {failure.message}"), sequence


class _Search:
    """Makes sequences of calls in fresh processes. `stale`: the last that showed the failure repeated an answer."""

    def __init__(self, runner: Runner, case: Case, check: str) -> None:
        self.runner, self.case, self.check = runner, case, check
        self.left, self.deadline = CALLS, time.monotonic() + SECONDS
        self.stale = False

    def shows(self, sequence: tuple[Case, ...]) -> bool:
        self.left -= len(sequence) + 1
        self.runner.fresh()
        answers = [self.runner.run(case).output_bytes for case in sequence]
        last = run_check(self.runner, self.case, self.check)
        if last.failure is None:
            return False
        self.stale = bool(last.output_bytes) and last.output_bytes in answers
        return True

    def shortest(self, sequence: tuple[Case, ...]) -> tuple[Case, ...]:
        """The nearest calls that suffice, doubled until they do; then ever smaller parts of these are left out."""
        length = 1
        while length < len(sequence) and self._may(sequence[-length:]):
            if self.shows(sequence[-length:]):
                sequence = sequence[-length:]
                break
            length *= 2
        part = len(sequence) // 2
        while part:
            start = 0
            while start < len(sequence) and len(sequence) > part:
                rest = sequence[:start] + sequence[start + part :]
                if self._may(rest) and self.shows(rest):
                    sequence = rest
                else:
                    start += part
            part //= 2
        return sequence

    def _may(self, sequence: tuple[Case, ...]) -> bool:
        return self.left > len(sequence) and time.monotonic() < self.deadline
