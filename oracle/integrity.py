"""Examinations beyond values, for a candidate that gave right numbers on every case so far.

Each takes the runner and the trials that passed, runs what it needs and returns findings: (tier, Failure, case, check),
where `check` names how `oracle.replay` can see the same thing again. What the candidate's process says is not needed for
a pass: the judge itself empties the kernels and compares bytes, and itself compares runs with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from oracle.case import Case
from oracle.errors import UsageError
from oracle.handed import Answer
from oracle.inputs import of_tensor
from oracle.minimize.values import drawn, elements
from oracle.noop import emptied
from oracle.runner import Runner, Trial
from oracle.verdict import Failure

Item = TypeVar("Item")
COMPARE, REFRESHED, REPEATED, WATCHED = "compare", "refreshed", "repeated", "watched"
REVERSED, LANES, EMPTIED, COMPILED = "reversed", "lanes", "emptied", "compiled"
CONFIG = "config-"  # with a number: that autotune configuration
CONFIGS = 4  # configurations judged, at most
_ORDERS = {"interpreter": (REVERSED, LANES)}  # what only a backend that decides order and lanes itself can examine
HOST = "host_compute"
HELD_CASES = 4  # cases on which it is looked whether memory holds the answer when emptied kernels are launched
WATCHED_CASES = 2  # watched beside the repetitions
PLAIN = ("uniform", "normal")  # regimes in which an input does not look like an output (as tanh of the tiny does)
NUDGED_ELEMENTS = 20_000  # of a case that is changed in a few elements
STATED = ("base", "shapes")  # tiers that every prompt states
SAMPLE = 4  # cases that each examination repeats: the largest of those that passed
SPREAD = 5  # cases of each autotune configuration, of all sizes: it may be wrong at some alone


@dataclass(frozen=True)
class Breach:
    """One examination's finding on one case."""

    failure: Failure
    case: Case
    check: str
    before: tuple[Case, ...] = ()  # calls that its process had seen


def run_check(runner: Runner, case: Case, check: str) -> Trial:
    """Execute a case as the named examination does; its trial fails if the examination would."""
    if check == REVERSED:
        return _as(runner.run(case, reverse=True), "order_dependent", "programs in reversed order: ")
    if check == LANES:
        trial = runner.run(case, fill_lanes=True)
        return _as(trial, "undefined_lanes", "lanes of masked loads without `other` reach the output: ")
    if check == REFRESHED:
        return _refreshed(runner, case)
    if check == REPEATED:
        first = _watched(runner, case)
        second = runner.run(case, poison=1)
        if first.failure is None and second.failure is not None:
            kind = "unwritten_output" if second.failure.kind == "numerical_mismatch" else "nondeterministic"
            return _as(second, kind, "a second run on the same inputs: ")
        return second if first.failure is None else first
    if check == WATCHED:
        return _watched(runner, case)
    if check.startswith(CONFIG) and check.removeprefix(CONFIG).isdecimal():
        return runner.run(case, config=int(check.removeprefix(CONFIG)))
    if check == EMPTIED:
        return _emptied(runner, case)
    if check == COMPILED:
        return runner.compile(case)
    if check != COMPARE:
        raise UsageError(f"TOKEN names the examination {check!r}, which this oracle does not have")
    return runner.run(case)


def examine(runner: Runner, passed: list[Trial], *, only_emptied: bool = False) -> tuple[list[Breach], list[str]]:
    """All examinations on the trials that passed, or only whether the kernels matter. Returns breaches and notes."""
    telling = sorted((t for t in passed if not t.empty), key=_elements, reverse=True)
    sample = [trial.case for trial in telling[:SAMPLE]]
    sizes = [trial.case for trial in spread(telling, SPREAD)]
    plain = [trial for trial in telling if not trial.expected.constant()]
    plain = [trial for trial in plain if trial.case.tier in STATED] or plain
    middle = [trial.case for trial in plain[len(plain) // 2 :]][:1]  # of middling size: each needs a process of its own
    breaches: list[Breach] = []
    notes: list[str] = []
    configs = max((trial.outcome.configs for trial in passed), default=1)
    if configs > CONFIGS:
        notes.append(f"{CONFIGS} of {configs} autotune configurations were judged")
    others = tuple(f"{CONFIG}{config}" for config in range(1, min(configs, CONFIGS)))
    whole = (REFRESHED, REPEATED, WATCHED, *others, *_ORDERS.get(runner.backend.name, ()))
    unseen = telling if only_emptied else telling[SAMPLE:]  # a repetition is watched as well
    watched = [trial.case for trial in spread(unseen, WATCHED_CASES)]
    cases = {REFRESHED: middle, WATCHED: watched, **dict.fromkeys(others, sizes)}
    for check in (WATCHED,) if only_emptied else whole:
        for case in cases.get(check, sample):
            before = () if check == REFRESHED else tuple(runner.history)
            trial = run_check(runner, case, check)
            if trial.failure is not None:
                breaches.append(Breach(trial.failure, case, check, before))
                break
    breach = _emptied_kernels(runner, _plain_first([t for t in telling if not t.expected.constant()]))
    if breach is not None:
        breaches.append(breach)
    return breaches, notes


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """At most `count` (2 or more) of the items at even distances, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    return [items[round(step * (len(items) - 1) / (count - 1))] for step in range(count)]


def _plain_first(trials: list[Trial]) -> list[Trial]:
    """Those first on which an answer in memory tells, of every size: sizes may be treated differently."""
    first = spread([trial for trial in trials if trial.case.regime in PLAIN], HELD_CASES)
    return [*first, *(trial for trial in trials if all(trial is not taken for taken in first))]


def _elements(trial: Trial) -> int:
    return sum(tensor.storage.nbytes for tensor in trial.inputs.tensors)


def _as(trial: Trial, kind: str, prefix: str) -> Trial:
    """The trial with its failure, if any, attributed to an examination. Portability kinds change tier. A timeout stays one:
    it tells nothing of what was examined."""
    failure = trial.failure
    if failure is None or failure.kind == "tampering":
        return trial
    tier = "portability" if kind in ("order_dependent", "undefined_lanes") else failure.tier
    if failure.kind == "timeout":
        return replace(trial, failure=replace(failure, tier=tier))
    return replace(trial, failure=Failure(kind, tier, prefix + failure.message, failure.detail))


def _watched(runner: Runner, case: Case) -> Trial:
    """The case with every operator looked at. What fails in another way only while it is watched has not failed."""
    trial = runner.run(case, watched=True)
    return trial if trial.failure is None or trial.failure.kind == HOST else runner.run(case)


def _refreshed(runner: Runner, case: Case) -> Trial:
    """The case after a call with other contents of the same sizes, then with a few elements changed, in a process that has
    seen nothing else."""
    after = "after a call with other contents of the same sizes: "
    with _beside(runner, runner.source) as fresh:
        other = case.with_(seed=case.seed ^ 1, values=None)
        first = fresh.run(other, watched=True)  # before TorchScript has fused anything
        if first.failure is not None and first.failure.kind == HOST:
            runner.executions += fresh.executions
            return first
        trial = fresh.run(case)
        if trial.failure is None and (nudged := _nudged(runner, case)) is not None:
            trial, after = fresh.run(nudged), "after a call whose contents differed in a few elements: "
        runner.executions += fresh.executions
    loud = trial.failure is not None and trial.failure.loud
    return trial if loud else _as(trial, "stale_result", after)


def _nudged(runner: Runner, case: Case) -> Case | None:
    """The case with two elements of each tensor exchanged, neither at an end nor in the middle; None where they are too
    large to be written out, or repeat."""
    if elements(runner.task, case) > NUDGED_ELEMENTS or of_tensor(case.layout)[0] == "expanded":
        return None
    values = {name: list(flat) for name, flat in drawn(runner.task, case).items()}
    for flat in values.values():
        first, second = len(flat) // 5, len(flat) // 3
        if len(flat) >= 8:
            flat[first], flat[second] = flat[second], flat[first]
    return case.with_(values=values)


def _beside(runner: Runner, source: str, *, noop: bool = False) -> Runner:
    """A runner with processes of its own; the given one's session goes on where it was."""
    return Runner(
        runner.backend,
        runner.task,
        source,
        references=runner.references,
        tolerance=runner.tolerance,
        forbid=frozenset() if noop else runner.forbid,
        timeout=runner.timeout,
        noop=noop,
    )


def _emptied_kernels(runner: Runner, telling: list[Trial]) -> Breach | None:
    """Whether the kernels matter. They do not where emptying them changes no output byte on any case with a telling
    reference, nor where memory holds the answer when an emptied one is launched: then host code has computed it."""
    changed = False
    with _beside(runner, emptied(runner.source), noop=True) as empty:
        for place, trial in enumerate(telling):
            if changed and place >= HELD_CASES:
                break
            ran = empty.run(trial.case, held=True)
            different = _outcome_bytes(ran) != _outcome_bytes(trial)
            changed = changed or different
            if _handed_over(runner, trial, ran):
                runner.executions += empty.executions
                failure = _host_failure if different else _unused_failure
                return Breach(failure(trial.case.tier), trial.case, EMPTIED)
        runner.executions += empty.executions
    if changed or not telling:
        return None
    case = telling[0].case
    return Breach(_unused_failure(case.tier), case, EMPTIED)


def _emptied(runner: Runner, case: Case) -> Trial:
    """The same on one case."""
    trial = runner.run(case)
    if trial.failure is not None:
        return trial
    with _beside(runner, emptied(runner.source), noop=True) as empty:
        ran = empty.run(case, held=True)
    if _outcome_bytes(ran) == _outcome_bytes(trial):
        return replace(trial, failure=_unused_failure(case.tier))
    if _handed_over(runner, trial, ran):
        return replace(trial, failure=_host_failure(case.tier))
    return trial


def _handed_over(runner: Runner, trial: Trial, ran: Trial) -> bool:
    """Whether memory held an output of the trial as emptied kernels were launched, where the author was told that host
    code must not compute. Outputs too small to tell, constant, or made of an input's own values say nothing."""
    if HOST not in runner.forbid or trial.case.regime not in PLAIN:
        return False
    for quantity in (*trial.expected.outputs, *trial.expected.mutated.values()):
        bounds = runner.tolerance.bounds(runner.task, trial.inputs, quantity)
        answer = Answer(np.asarray(quantity.values, np.float64), bounds, quantity.dtype)
        if not answer.telling() or any(answer.made_of(t.values(), t.dtype) for t in trial.inputs.tensors):
            continue
        if any(answer.found_in(chunk) for chunk in ran.outcome.held):
            return True
    return False


def _unused_failure(tier: str) -> Failure:
    return Failure("unused_kernel", tier, "the output is the same when every Triton kernel does nothing")


def _host_failure(tier: str) -> Failure:
    return Failure(HOST, tier, "a kernel is given the answer, computed by host code")


def _outcome_bytes(trial: Trial) -> object:
    """What a call left behind: status, output bytes and the bytes of inputs (a mutated argument is an output)."""
    return (trial.outcome.status, trial.output_bytes, tuple(storage.tobytes() for storage in trial.outcome.storages))
