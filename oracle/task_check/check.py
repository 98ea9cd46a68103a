"""One task under its stand-ins, each judged like any candidate, with the naive checks beside."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from oracle.case import Case
from oracle.errors import InfrastructureError
from oracle.inputs import Inputs, build
from oracle.naive import PROFILES, Profile, first_calls, run_naive, run_profile
from oracle.portfolio import portfolio
from oracle.schema import Task, as_tuple
from oracle.task_check import accumulation
from oracle.task_check.soundness import unsound
from oracle.task_check.stand_ins import KINDS, Known, Result, arguments, inapplicable, source
from oracle.validation.bench import Bench
from oracle.verdict import PASS
from oracle.worker.protocol import TensorBuffer

HALF = "half"  # the stand-in that accumulates in half precision
REJECTED, ACCEPTED, INAPPLICABLE, UNMEASURED = "rejected", "accepted", "not applicable", "not measured"
BROKEN = "broken"  # not judged, or failing for another reason than its values: nothing is known
LENGTHEN = "add `half_sum` to `regimes` and longer sizes to the dim of `reduces`, or tighten `scale` and `storage`"
MEND = "tighten `scale` and `storage`, or let the sizes and regimes show the difference"
NAMES = KINDS | {
    HALF: f"sums of {accumulation.TERMS} terms and more kept in half precision, emulated: such cases that fail, "
    "and real kernels of that kind that fail"
}
BY_VALUES = ("numerical_mismatch", "nonfinite_mismatch")


@dataclass(frozen=True)
class Finding:
    """What the oracle says of a stand-in. `kind` and `tier` of its failure; `reason` for whatever is not `REJECTED`, or
    how it was measured. `naive`: each profile's status."""

    status: str
    kind: str = ""
    tier: str = ""
    reason: str = ""
    naive: dict[str, str] = field(default_factory=dict)


@dataclass
class TaskCheck:
    """`unsound`: what is wrong with the task file, one line each. It holds if nothing is, and no stand-in passes."""

    task: str
    unsound: list[str] = field(default_factory=list)
    stand_ins: dict[str, Finding] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return not self.unsound and all(finding.status != ACCEPTED for finding in self.stand_ins.values())


def check_task(bench: Bench, task: Task) -> TaskCheck:
    """Raises InfrastructureError for our own trouble; whatever is wrong with the task is in the result."""
    started = time.monotonic()
    check = TaskCheck(task.id)
    cases = portfolio(task)
    try:
        check.unsound = unsound(task, cases, bench.references)
        asked = [_asked(task, build(task, case), bench) for case in cases]
        naive = {profile: _asked_naively(task, profile) for profile in PROFILES.values()}
        emulated = emulated_over(bench, task, cases)
    except InfrastructureError as error:  # no candidate has run yet: these are the task's own functions
        check.unsound = [str(error)]
        return check
    for kind in KINDS:
        check.stand_ins[kind] = _stand_in(bench, task, kind, asked, naive)
    check.stand_ins[HALF] = _with_kernels(bench, task, cases, emulated)
    check.unsound += [
        f"stand-in {kind}: {finding.reason}" for kind, finding in check.stand_ins.items() if finding.status == BROKEN
    ]
    check.seconds = time.monotonic() - started
    return check


# --- answers that know nothing --------------------------------------------------------------------------------------


def _stand_in(bench: Bench, task: Task, kind: str, asked: list[Known], naive: dict[Profile, list[Known]]) -> Finding:
    """In the core domain: that no NaN comes out where one went in fails zeros under the widest tolerance too."""
    if reason := inapplicable(kind, asked):
        return Finding(INAPPLICABLE, reason=reason)
    verdict = bench.judge(0, "core").judge(task, source(task, kind, asked), naive=False, minimized=False)
    accepted = {
        profile.name: run_profile(bench.backend, task, source(task, kind, known), profile).status
        for profile, known in naive.items()
    }
    failure = verdict.failure
    if failure is None and verdict.status == PASS:
        return Finding(ACCEPTED, reason=f"passes every case of the core domain: {MEND}", naive=accepted)
    if failure is None:
        return Finding(BROKEN, reason=f"could not be judged ({'; '.join(verdict.notes)})", naive=accepted)
    if failure.kind not in BY_VALUES:
        return Finding(BROKEN, failure.kind, failure.tier, f"fails for {failure.kind} ({failure.message})", accepted)
    return Finding(REJECTED, failure.kind, failure.tier, naive=accepted)


def _asked(task: Task, inputs: Inputs, bench: Bench) -> Known:
    """A case as the stand-ins know it."""
    expected, call = bench.references.get(task, inputs), inputs.call()
    places = {argument.name: place for place, argument in arguments(call) if isinstance(argument, TensorBuffer)}
    returned = [Result(quantity.values, quantity.dtype) for quantity in expected.outputs]
    changed = [Result(q.values, q.dtype, places[name]) for name, q in expected.mutated.items()]
    return Known(call, expected.structure, (*returned, *changed))


def _asked_naively(task: Task, profile: Profile) -> list[Known]:
    """The calls of a naive check as the stand-ins know them; it looks at returned tensors alone."""
    found = []
    for call, result in first_calls(task, profile):
        tensors = () if result is None else as_tuple(result)
        returned = tuple(Result(_array(t), str(t.dtype).removeprefix("torch.")) for t in tensors)
        found.append(Known(call, "tensor" if isinstance(result, torch.Tensor) else "tuple", returned))
    return found


def _array(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


# --- sums in half precision -----------------------------------------------------------------------------------------


def emulated_over(bench: Bench, task: Task, cases: list[Case]) -> Finding:
    """The task's own sums in half precision, over the portfolio, else over one long case beyond it, per dtype."""
    counts: list[str] = []
    accepted: list[str] = []
    kinds: list[str] = []
    beyond = False
    for dtype in task.dtypes:
        found = _kinds(bench, task, [case for case in cases if case.dtype == dtype])
        if not found:
            found = _kinds(bench, task, accumulation.beyond_portfolio(task, dtype))
            beyond = beyond or bool(found)
        if found:
            kinds += (failed := [kind for kind in found if kind])
            counts.append(f"{dtype} {len(failed)}/{len(found)}")
            accepted += [] if failed else [dtype]
    if not counts:
        adds = task.scale is not None and task.reduces is not None
        stated = adds and max(task.dims[task.reduces or ""].values) >= accumulation.TERMS
        if stated:
            return Finding(UNMEASURED, reason=f"no long sum over {task.reduces} was recognised in `reference`")
        return Finding(INAPPLICABLE, reason=f"no case adds {accumulation.TERMS} terms")
    measured = f"{', '.join(counts)}{' (beyond the portfolio)' if beyond else ''}"
    if accepted:
        return Finding(ACCEPTED, reason=f"passes in {', '.join(accepted)} ({measured}): {LENGTHEN}")
    return Finding(REJECTED, max(kinds, key=kinds.count), reason=measured)


def _kinds(bench: Bench, task: Task, cases: list[Case]) -> list[str]:
    """Failure kind ("" if none) of each case that has a long sum."""
    found = []
    for case in cases:
        inputs = build(task, case)
        kind = accumulation.emulated(task, inputs, bench.references.get(task, inputs))
        found += [] if kind is None else [kind]
    return found


def _with_kernels(bench: Bench, task: Task, cases: list[Case], emulated: Finding) -> Finding:
    """The emulated finding with what real kernels add: how many of them fail, and which naive checks pass one that does.

    A kernel with an accumulator of many lanes, or of one sum a block, rounds each sum a few times only: that is within
    the tolerance, and fails nothing here.
    """
    failed, total, naive = 0, 0, dict[str, str]()
    for half, mutant in accumulation.kernels_in_half(task):
        dtype = half if half in task.dtypes else task.dtypes[0]
        chosen = accumulation.long_cases(task, cases, dtype)
        if not chosen:
            continue
        total += 1
        with bench.runner(task.id, mutant.source) as runner:
            wrong = any((failure := runner.run(case).failure) and failure.kind in BY_VALUES for case in chosen)
        if wrong:
            failed += 1
            for profile, result in run_naive(bench.backend, task, mutant.source).items():
                naive[profile] = PASS if PASS in (result.status, naive.get(profile)) else result.status
    if not total:
        return emulated
    return replace(emulated, reason=f"{emulated.reason}; kernels: {failed}/{total}", naive=naive)
