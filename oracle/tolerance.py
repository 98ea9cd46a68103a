"""Tolerance policies: how far from the float64 reference a right implementation may be, per element.

A policy gives absolute bounds; `oracle.compare` applies them. `derived` is the default; `paper` and `calibrated` exist to
be compared with it on the same stored outputs. In what follows u32 = 2^-24 and u = half the spacing at 1 of a dtype.

`derived` bounds |got − reference| by the sum of

    ROUNDINGS32 · drift · u32 · scale       arithmetic in float32, over the terms that are added (`Task.scale`)
    ROUNDINGS · max(u_out · |reference|, u_test · storage)    values rounded to the output's or the test dtype
    TF32_ROUNDINGS · 2^-11 · scale / growth                   cuda, float32, where the task allows TF32 products
    (FLUSHES + n) · 2^-126 + ROUNDINGS · (half the output's subnormal spacing)    underflow, n terms summed

Constants and their evidence (`tests/oracle/test_tolerance.py` measures the figures again):

ROUNDINGS32 = 16. The scale grows with √n. Sums of random terms, in any order, stay below 1 u32·scale. An exponential by
    ex2.approx errs by 2 ulp and a division by div.full by 2 ulp (PTX manual): 8 u32 of a sigmoid. Over ten operators, 13
    ways to build them and all finite regimes the largest figure measured is 11 (silu far from 0, layer_norm of tied
    values); 16 = 1.5 × that.
DRIFT = 16. Equal terms added one after another all err in one direction: 0.17 √n u32·scale in a sum, 0.66 √n in
    layer_norm (42 at n = 4097). Where a row of an argument is constant along the reduced dim, the bound grows by
    √n / DRIFT beyond n = DRIFT²: to 64 u32·scale there.
ROUNDINGS = 3.5. One rounding errs by up to 1 u, three by up to 3 u. Of 2 million products rounded k times the largest
    error was 1.00, 1.97, 2.75, 3.42 u for k = 1, 2, 3, 4: so four roundings on the way are right. Rounding the running sum
    of a reduction of 1024 and more terms is not: its error grows with √n.
TF32_ROUNDINGS = 4. Tensor cores cut each operand to 10 stored bits: below 2^-10 of each of the two.
FLUSHES = 4. float32 arithmetic may flush a result below 2^-126 to zero: each of the n terms of a sum, and a few more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from oracle.dtypes import FLOATS
from oracle.errors import UsageError
from oracle.inputs import Inputs
from oracle.reference import Quantity
from oracle.scale import growth
from oracle.schema import Task

DEFAULT = "derived"

U32 = 2.0**-24
U_TF32 = 2.0**-11
ROUNDINGS32 = 16.0
DRIFT = 16.0
ROUNDINGS = 3.5
TF32_ROUNDINGS = 4.0
FLUSHES = 4.0

CALIBRATED_FILE = Path(__file__).with_name("calibrated.json")
QUANTILE, FACTOR = 0.95, 1.5  # of the published calibration


class Rule(Protocol):
    """Absolute bounds for one expected tensor of a floating dtype, broadcastable to its shape. Raises UsageError where
    the rule has no figure for the task."""

    def __call__(self, task: Task, inputs: Inputs, quantity: Quantity, backend: str) -> np.ndarray: ...


@dataclass(frozen=True)
class Policy:
    """A rule by its name, for one backend ("interpreter" or "cuda": what the hardware may do on its own differs)."""

    name: str
    backend: str
    rule: Rule

    def bounds(self, task: Task, inputs: Inputs, quantity: Quantity) -> np.ndarray:
        """Absolute bounds in float64, in the quantity's shape; 0 (exact) for integers and booleans."""
        exact = quantity.dtype not in FLOATS
        bound = np.array(0.0) if exact else self.rule(task, inputs, quantity, self.backend)
        return np.broadcast_to(bound, quantity.values.shape)


def policy(name: str = DEFAULT, backend: str = "interpreter") -> Policy:
    """The policy of that name. Raises UsageError, listing the names, for any other."""
    if name not in RULES:
        raise UsageError(f"--tolerance {name!r} is unknown; use one of: {', '.join(RULES)}")
    return Policy(name, backend, RULES[name])


def check_covered(name: str, tasks: Iterable[Task]) -> None:
    """UsageError where a policy is unknown or has no figure for a task or one of its dtypes: said before anything is
    judged, it is not a fault of the judge's later."""
    policy(name)
    measured = load_calibrated()["atol"] if name == "calibrated" else {}
    for task in tasks:
        if name == "paper" and not (task.published and task.published.atol):
            raise UsageError(f"--tolerance paper: {task.id} has no published tolerance; use --tolerance {DEFAULT}")
        lacking = [dtype for dtype in task.dtypes if dtype not in measured.get(task.id, {})]
        if name == "calibrated" and lacking:
            raise UsageError(
                f"--tolerance calibrated: no control of {task.id} was measured in {', '.join(lacking)}; "
                f"use --tolerance {DEFAULT}"
            )


def derived(task: Task, inputs: Inputs, quantity: Quantity, backend: str) -> np.ndarray:
    """Bounds from the error scale; see the module's docstring for the formula and its evidence."""
    case, out = inputs.case, FLOATS[quantity.dtype]
    terms = case.dims.get(task.reduces, 1) if task.reduces else 1
    u_out, u_test = out.eps / 2, FLOATS[case.dtype].eps / 2
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.maximum(u_out * np.abs(quantity.values), u_test * quantity.storage)
        bound = ROUNDINGS32 * _drift(task, inputs, terms) * U32 * quantity.scale + ROUNDINGS * rounded
        if task.tf32 and backend == "cuda" and case.dtype == "float32":
            bound = bound + TF32_ROUNDINGS * U_TF32 * quantity.scale / growth(terms)
    half_subnormal = out.smallest_normal * out.eps / 2
    return bound + (FLUSHES + terms) * FLOATS["float32"].smallest_normal + ROUNDINGS * half_subnormal


def _drift(task: Task, inputs: Inputs, terms: int) -> float:
    """Growth of the bound for sums of equal terms: 1 unless some argument is constant along the reduced dim."""
    if terms <= DRIFT**2:
        return 1.0
    for spec, buffer in zip(inputs.form.tensors, inputs.tensors, strict=True):
        if task.reduces in spec.shape:
            axis, values = spec.shape.index(task.reduces), buffer.values()
            if (values == values.take([0], axis=axis)).all(axis=axis).any():
                return float(terms**0.5 / DRIFT)
    return 1.0


def paper(task: Task, inputs: Inputs, quantity: Quantity, backend: str) -> np.ndarray:
    """The seed paper's absolute value for the operator and dtype. A dtype that it lacks takes the value of the published
    dtype with the nearest precision, times the ratio of their unit roundoffs (bfloat16 = 8 × float16)."""
    published = dict(task.published.atol) if task.published else {}
    if not published:
        raise UsageError(f"--tolerance paper: {task.id} has no published tolerance; use --tolerance {DEFAULT}")
    dtype = inputs.case.dtype
    if dtype not in published:
        nearest = min(published, key=lambda name: abs(np.log2(FLOATS[name].eps / FLOATS[dtype].eps)))
        published[dtype] = published[nearest] * FLOATS[dtype].eps / FLOATS[nearest].eps
    return np.array(published[dtype])


def calibrated(task: Task, inputs: Inputs, quantity: Quantity, backend: str) -> np.ndarray:
    """The published procedure on our own controls: `QUANTILE` of passing controls' largest errors × `FACTOR`."""
    return from_figures(load_calibrated()["atol"])(task, inputs, quantity, backend)


def from_figures(atol: Mapping[str, Mapping[str, float]]) -> Rule:
    """The rule that one absolute tolerance per task and dtype makes."""

    def rule(task: Task, inputs: Inputs, quantity: Quantity, backend: str) -> np.ndarray:
        known, dtype = atol.get(task.id, {}), inputs.case.dtype
        if dtype not in known:
            raise UsageError(
                f"--tolerance calibrated: no control of {task.id} was measured in {dtype}; use --tolerance {DEFAULT}"
            )
        return np.array(float(known[dtype]))

    return rule


RULES: dict[str, Rule] = {"derived": derived, "paper": paper, "calibrated": calibrated}


def calibrate(errors: Mapping[tuple[str, str], Iterable[float]]) -> dict[str, Any]:
    """Calibrated tolerances from measured errors: (task id, dtype) → largest absolute error of each passing control case.

    Returns what `CALIBRATED_FILE` holds: "quantile", "factor",
    and, each by task and dtype, "atol" and "cases" (how many were measured).
    """
    atol: dict[str, dict[str, float]] = {}
    cases: dict[str, dict[str, int]] = {}
    for (task, dtype), measured in sorted(errors.items()):
        values = np.array([value for value in measured if np.isfinite(value)])
        if values.size:
            atol.setdefault(task, {})[dtype] = float(np.quantile(values, QUANTILE)) * FACTOR
            cases.setdefault(task, {})[dtype] = int(values.size)
    return {"quantile": QUANTILE, "factor": FACTOR, "atol": atol, "cases": cases}


def load_calibrated(path: Path | None = None) -> dict[str, Any]:
    """The stored calibration. Raises UsageError where nothing was measured yet."""
    path = path or CALIBRATED_FILE
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(
            f"--tolerance calibrated: nothing is measured yet; run `agentloop validate`, or use --tolerance {DEFAULT}"
        ) from None
    except ValueError:
        raise UsageError(f"{path}: not a calibration file; run `agentloop validate` to write it again") from None
