"""What is judged when speed is measured: right kernels of the corpus and wrong ones, the same at every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oracle.corpus import BUG, CONTROL, kernels
from oracle.corpus.mutate import apply
from oracle.schema import Task

PRODUCTS = frozenset({"matmul", "bmm", "linear", "attention"})
ROW, PRODUCT, WRONG = "elementwise or row-wise", "product", "wrong"
SEED = 1  # of the mutations


@dataclass(frozen=True)
class Sample:
    """One candidate. `group`: ROW or PRODUCT where it is right, else WRONG."""

    name: str
    group: str
    task: Task
    source: str


def right(tasks: Mapping[str, Task], builds: int) -> list[Sample]:
    """The first `builds` right kernels of each operator of suite `ops`."""
    found: dict[str, list[Sample]] = {}
    for kernel in kernels("ops", label=CONTROL):
        samples = found.setdefault(kernel.op, [])
        if len(samples) < builds:
            group = PRODUCT if kernel.op in PRODUCTS else ROW
            samples.append(Sample(kernel.name, group, tasks[kernel.task], kernel.source))
    return [sample for samples in found.values() for sample in samples]


def wrong(tasks: Mapping[str, Task], builds: int) -> list[Sample]:
    """The seed paper's ten bugs, and a fault in each right kernel that `right` gives. A few of the latter change nothing."""
    bugs = [Sample(k.name, WRONG, tasks[k.task], k.source) for k in kernels("seed", label=BUG)]
    changed = [(sample, apply(sample.source, SEED, 1)[0]) for sample in right(tasks, builds)]
    return bugs + [Sample(f"{sample.name} changed", WRONG, sample.task, source) for sample, source in changed]
