"""Mutants that a written proof calls equivalent, and the 1,000 unseen cases on which each must agree with its original.

`oracle/corpus/equivalents.json` holds the proofs: why no input that the contract allows tells the two apart. A proof counts
only together with its cases: drawn from seeds that no judgement uses, every output equal element by element (NaN equal to
NaN), and so is all that was written. Equal within a tolerance is not equal.

The same file explains survivors that are not equivalent: wrong only where no case reaches, or within what the contract
allows. An explanation is printed and changes no figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from oracle.case import Case
from oracle.corpus import CONTROL, Kernel, kernels
from oracle.corpus.mutate import Mutant, mutants
from oracle.dtypes import NUMPY
from oracle.inputs import Inputs, build
from oracle.portfolio import portfolio
from oracle.schema import Task
from oracle.validation.bench import LIMITS, Bench, Job
from oracle.worker.protocol import RETURNED, Outcome, Session

PART = "equivalence"
FILE = Path(__file__).parents[1] / "corpus" / "equivalents.json"
CASES = 1000
FIRST_SEED = 50_000  # judgements and measurements use far smaller ones


@dataclass(frozen=True)
class Proof:
    """Why a mutant is no other program than its original, and on how many unseen cases it was seen to agree; `kernel` is
    the original's task and name."""

    digest: str
    kernel: str
    change: str
    text: str
    equal: int


@cache
def proofs() -> dict[str, Proof]:
    """The written proofs by the mutants' digests. A file entry: {"proof", "mutants": [{"digest", "kernel", "change",
    "equal"}…]}, or {"explained", "mutants": [{"digest", "kernel", "change"}…]}."""
    return {
        mutant["digest"]: Proof(text=entry["proof"], **mutant)
        for entry in _entries()
        if "proof" in entry
        for mutant in entry["mutants"]
    }


def explained(digest: str) -> str | None:
    """Why a survivor that has no proof survives, if that is written down."""
    texts = (
        entry["explained"]
        for entry in _entries()
        if "explained" in entry and any(mutant["digest"] == digest for mutant in entry["mutants"])
    )
    return next(texts, None)


@cache
def _entries() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text())


def proven(digest: str) -> bool:
    """Whether a mutant has a proof whose cases were all equal."""
    proof = proofs().get(digest)
    return proof is not None and proof.equal >= CASES


def jobs(count: int = CASES) -> list[Job]:
    """One job per mutant with a proof."""
    wanted = {proof.kernel for proof in proofs().values()}
    return [
        Job(PART, mutant.digest, partial(_compared, kernel, mutant, count))
        for kernel in kernels(label=CONTROL)
        if f"{kernel.task} {kernel.name}" in wanted
        for mutant in mutants(kernel.source)
        if mutant.digest in proofs()
    ]


def _compared(kernel: Kernel, mutant: Mutant, count: int, bench: Bench) -> dict[str, Any]:
    """ "equal": {digest: cases on which it agreed}; "differs": {digest: the first case on which it did not}, or {}."""
    task = bench.tasks[kernel.task]
    equal, differs = 0, {}
    right = bench.backend.open(kernel.source, task.entry)
    changed = bench.backend.open(mutant.source, task.entry)
    try:
        for inputs in unseen(task, count):
            if not _same(_call(changed, inputs), _call(right, inputs)):
                differs = {mutant.digest: inputs.case.to_json()}
                break
            equal += 1
    finally:
        right.close()
        changed.close()
    return {"task": kernel.task, "kernel": kernel.name, "equal": {mutant.digest: equal}, "differs": differs}


def unseen(task: Task, count: int) -> Iterator[Inputs]:
    """`count` different inputs of the full domain that no judgement has seen."""
    seen: set[str] = set()
    for case in _cases(task):
        inputs = build(task, case)
        if inputs.digest not in seen:
            seen.add(inputs.digest)
            yield inputs
        if len(seen) == count:
            return


def _cases(task: Task) -> Iterator[Case]:
    seed = FIRST_SEED
    while True:
        yield from portfolio(task, seed=seed, stream=PART)
        seed += 1


def _call(session: Session, inputs: Inputs) -> Outcome:
    return session.call(inputs.call(), timeout=4 * LIMITS.call_seconds)


def _same(got: Outcome, want: Outcome) -> bool:
    if (got.status, want.status, got.structure) != (RETURNED, RETURNED, want.structure):
        return False
    if len(got.outputs) != len(want.outputs) or len(got.storages) != len(want.storages):
        return False
    forms = all(
        (a.dtype, a.shape, a.contiguous, a.aliases) == (b.dtype, b.shape, b.contiguous, b.aliases)
        and _equal(a.data, b.data, a.dtype)
        for a, b in zip(got.outputs, want.outputs, strict=True)
    )
    return forms and all(a.tobytes() == b.tobytes() for a, b in zip(got.storages, want.storages, strict=True))


def _equal(a: bytes, b: bytes, dtype: str) -> bool:
    x, y = (np.frombuffer(data, NUMPY[dtype]) for data in (a, b))
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())
