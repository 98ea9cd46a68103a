"""Kernels whose label is known: what the oracle itself is tested on.

`kernels/seed/` holds the seed paper's 16 right kernels and 10 bugs (arXiv 2606.20128), each as a Triton kernel;
`kernels/ops/` holds right kernels of the 30 operators, several built differently for most. Files are content: they are
read, never imported here, and judged like any candidate. `mutate` makes wrong kernels of the right ones.

A file is named OP__LABEL_BUILD.py. Its docstring says how it is built or, for a bug, what is wrong.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oracle.syntax import parse

ROOT = Path(__file__).parent / "kernels"
CONTROL, BUG = "control", "bug"


@dataclass(frozen=True)
class Kernel:
    """One kernel file.

    task    id of the task it implements, "seed/softmax".
    name    file name without its ending, unique within a suite.
    label   CONTROL (right) or BUG.
    note    one line: how it is built; for a bug, what is wrong.
    paper   for suite `seed`, the published corpus entry that it stands for, else "".
    """

    task: str
    name: str
    label: str
    path: Path
    source: str
    note: str
    paper: str = ""

    @property
    def suite(self) -> str:
        return self.task.partition("/")[0]

    @property
    def op(self) -> str:
        return self.task.partition("/")[2]


def kernels(suite: str | None = None, op: str | None = None, label: str | None = None) -> list[Kernel]:
    """Kernels in order of suite and name; each argument given narrows the list. `op` is a bare operator's name."""
    return [
        kernel
        for kernel in _all()
        if suite in (None, kernel.suite) and op in (None, kernel.op) and label in (None, kernel.label)
    ]


def right_kernels(task_id: str) -> list[Kernel]:
    """The right kernels of one task, by its full id ("ops/softmax")."""
    return [kernel for kernel in _all() if kernel.task == task_id and kernel.label == CONTROL]


@cache
def _all() -> tuple[Kernel, ...]:
    return tuple(_read(path) for path in sorted(ROOT.glob("*/*.py")))


def _read(path: Path) -> Kernel:
    suite, source = path.parent.name, path.read_text()
    op, _, rest = path.stem.partition("__")
    label = rest.partition("_")[0]
    if label not in (CONTROL, BUG):
        raise ValueError(f"{path.name}: the name is not OP__control_BUILD.py or OP__bug_NAME.py")
    note = " ".join((ast.get_docstring(parse(source)) or "").split())
    return Kernel(
        f"{suite}/{op}", path.stem, label, path, source, note, _paper().get(path.stem, "") if suite == "seed" else ""
    )


@cache
def _paper() -> dict[str, str]:
    """Published corpus entry by kernel name, from the manifest beside the seed kernels."""
    entries = json.loads((ROOT / "seed" / "manifest.json").read_text())
    return {entry["name"]: entry["paper"] for entry in entries}
