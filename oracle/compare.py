"""Comparison of what a candidate's call left behind with what the task's float64 reference demands.

Pure functions over bytes: nothing here runs or trusts candidate code. Whatever an outcome holds, the answer is a value.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oracle.dtypes import FLOATS, NUMPY
from oracle.errors import InfrastructureError
from oracle.inputs import Inputs
from oracle.layouts import guard_mask
from oracle.poison import poisoned
from oracle.reference import Expected, Quantity, pointed_values
from oracle.schema import Task
from oracle.tolerance import Policy
from oracle.verdict import FAILURE_KINDS
from oracle.worker import protocol
from oracle.worker.protocol import Outcome, RawTensor

WORST = 8  # elements listed

_ENDS = {protocol.TIMEOUT: "timeout", protocol.MEMORY: "memory_limit", protocol.CRASHED: "crashed"}


@dataclass(frozen=True)
class Comparison:
    """What the comparison found. `kind` is a failure kind, None where all that is judged is right.

    message  one line       detail   a traceback of the candidate's own code, if it raised
    output   the tensor that `stats` and `worst` describe: the failing one, else the one nearest to its tolerance
    stats    count, judged, exceeding; max/mean/p50/p90/p99 of |got − reference| over the judged elements where both are
             finite, max/mean relative and in units in the last place of the output dtype; max_ratio = error / tolerance
    worst    up to `WORST` elements, wrong ones first: {"output" (its place), "index", "got",
             "expected"} (non-finite as "nan", "inf", "-inf")
    """

    kind: str | None
    message: str = ""
    detail: str = ""
    output: str | None = None
    stats: dict[str, Any] = field(default_factory=dict)
    worst: list[dict[str, Any]] = field(default_factory=list)


def compare(expected: Expected, outcome: Outcome, task: Task, inputs: Inputs, tolerance: Policy) -> Comparison:
    """Judge one call: how it ended, memory it must not touch, structure, then values. The first fault found counts.

    Raises InfrastructureError where the inputs' storages were not read back after the call: the backend's part.
    """
    fault = (
        _ended(outcome) or _late(outcome) or _memory(outcome, task, inputs) or _form(expected, outcome, task, tolerance)
    )
    if fault:
        return fault
    results = [
        _judge(place, quantity, got, tolerance.bounds(task, inputs, quantity), task, inputs)
        for place, (quantity, got) in enumerate(pairs(expected, outcome, inputs))
    ]
    failed = [result for result in results if result.kind]
    if failed or not results:
        return failed[0] if failed else Comparison(None)
    return max(results, key=lambda result: result.stats["max_ratio"] or 0.0)


def pairs(expected: Expected, outcome: Outcome, inputs: Inputs) -> list[tuple[Quantity, np.ndarray]]:
    """Each expected tensor with what came in its place: outputs, then arguments that change by contract. Outputs whose
    bytes make no array of the stated form are left out."""
    found = []
    for quantity, raw in zip(expected.outputs, outcome.outputs, strict=False):
        with contextlib.suppress(KeyError, ValueError):
            found.append((quantity, _flags(raw.array())))
    for buffer, storage in zip(inputs.call().buffers(), outcome.storages, strict=False):
        if buffer.name in expected.mutated:
            found.append((expected.mutated[buffer.name], _flags(buffer.values(storage))))
    return found


def _flags(values: np.ndarray) -> np.ndarray:
    """Booleans made of whatever bytes stand for them; other dtypes as they are."""
    return values.copy().view(np.uint8) != 0 if values.dtype == np.bool_ else values


# --- how the call ended, memory, form -------------------------------------------------------------------------------


def _ended(outcome: Outcome) -> Comparison | None:
    if outcome.status == protocol.RETURNED:
        return None
    if outcome.status == protocol.RAISED:
        kind = outcome.error_kind if outcome.error_kind in FAILURE_KINDS else "launch_error"
    else:
        kind = _ENDS.get(outcome.status, "crashed")
    return Comparison(kind, _line(outcome.message) or f"the call ended: {kind}", outcome.traceback)


def _late(outcome: Outcome) -> Comparison | None:
    if outcome.late:
        return Comparison("late_write", "an output changed after the call had returned and synchronised")
    return None


def _memory(outcome: Outcome, task: Task, inputs: Inputs) -> Comparison | None:
    """Bytes of the inputs' storages that changed: outside the elements, or in an argument that must not change."""
    writable, buffers = _writable(task, inputs), inputs.call().buffers()
    if len(outcome.storages) < len(buffers):
        raise InfrastructureError(f"{len(outcome.storages)} of {len(buffers)} input storages were read back")
    for buffer, after in zip(buffers, outcome.storages, strict=False):
        if after.nbytes != buffer.storage.nbytes:
            return Comparison("out_of_bounds", f"the storage of {buffer.name} changed its size")
        changed = np.flatnonzero(buffer.storage.reshape(-1) != after.view(np.uint8).reshape(-1))
        if not changed.size:
            continue
        touched = np.unique(changed // NUMPY[buffer.dtype].itemsize)
        outside = touched[guard_mask(buffer)[touched]]
        if outside.size:
            place = int(outside[0]) - buffer.offset
            return Comparison(
                "out_of_bounds",
                f"wrote {outside.size} elements outside {buffer.name} (first at {place:+d} elements from its start)",
            )
        if buffer.name not in writable:
            return Comparison("input_mutated", f"changed {touched.size} elements of its input {buffer.name}")
    return None


def _writable(task: Task, inputs: Inputs) -> set[str]:
    destinations = {tensor.name for tensor in task.form(inputs.case.form).tensors if tensor.values == "out"}
    return destinations | set(task.mutates)


def _form(expected: Expected, outcome: Outcome, task: Task, tolerance: Policy) -> Comparison | None:
    """Structure, shape, dtype, device, strides and aliasing, exactly."""
    if expected.structure == "None":
        return None
    count = len(expected.outputs)
    wanted = "one tensor" if expected.structure == "tensor" else f"a tuple of {count} tensors"
    if outcome.structure != expected.structure or len(outcome.outputs) != count:
        got = f"a tuple of {len(outcome.outputs)} tensors" if outcome.structure == "tuple" else outcome.structure
        return Comparison("wrong_structure", f"returned {_line(got)}, expected {wanted}")
    device = "cuda" if tolerance.backend == "cuda" else "cpu"
    for quantity, raw in zip(expected.outputs, outcome.outputs, strict=True):
        fault = _tensor_form(quantity, raw, device)
        if fault is None and raw.aliases is not None and raw.aliases not in task.mutates:
            fault = ("aliased_output", f"shares memory with the input {raw.aliases}")
        if fault:
            return Comparison(fault[0], _line(f"{quantity.name} {fault[1]}"), output=quantity.name)
    return None


def _tensor_form(quantity: Quantity, raw: RawTensor, device: str) -> tuple[str, str] | None:
    if tuple(raw.shape) != quantity.values.shape:
        return "wrong_shape", f"has shape {list(raw.shape)}, expected {list(quantity.values.shape)}"
    if raw.dtype != quantity.dtype:
        return "wrong_dtype", f"has dtype {raw.dtype}, expected {quantity.dtype}"
    if raw.device.partition(":")[0] != device:
        return "wrong_structure", f"is on device {raw.device}, expected the inputs' ({device})"
    if quantity.contiguous and not raw.contiguous:
        return "wrong_structure", "is not contiguous"
    try:
        raw.array()
    except (KeyError, ValueError):
        return "wrong_structure", "does not hold as many bytes as its shape and dtype say"
    return None


# --- values ---------------------------------------------------------------------------------------------------------


def wrong_elements(got: np.ndarray, quantity: Quantity, bound: np.ndarray) -> np.ndarray:
    """Bool mask of judged elements that are wrong, by the rules of floating results (exact for integers and booleans):

    non-finite elements match in place and sign; at the output dtype's overflow threshold finite and infinite are both
    right; below its smallest normal zero is right; −0 equals 0; everything else is within `bound` of the reference.
    """
    if quantity.dtype not in FLOATS:
        return quantity.judged & (got != quantity.values)
    limit, reference = FLOATS[quantity.dtype], quantity.values.astype(np.float64)
    value = got.astype(np.float64)
    threshold = limit.max * (1 + limit.eps / (2 * (2 - limit.eps)))  # half a spacing above the largest finite value
    size = np.abs(reference)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(value - np.clip(reference, -limit.max, limit.max))
        finite = np.isfinite(value) & np.isfinite(reference) & (error <= bound) & (size - bound <= threshold)
        flushed = (value == 0) & (size < limit.smallest_normal)
        infinite = np.isinf(value) & (np.sign(value) == np.sign(reference)) & (size + bound >= threshold)
    both_nan = np.isnan(value) & np.isnan(reference)
    return quantity.judged & ~(finite | flushed | infinite | both_nan)


def _judge(
    place: int, quantity: Quantity, got: np.ndarray, bound: np.ndarray, task: Task, inputs: Inputs
) -> Comparison:
    """Compare one tensor whose form is right; `place` counts outputs, then changed arguments."""
    shown = got
    if quantity.index == "value":
        try:
            quantity, got, bound = _pointed(quantity, got, task, inputs)
        except IndexError:
            return Comparison(
                "numerical_mismatch", f"{quantity.name} holds an index that points outside", output=quantity.name
            )
    wrong = wrong_elements(got, quantity, bound)
    stats = statistics(got, quantity, bound, wrong)
    worst = [{"output": place} | element for element in _worst(shown, got, quantity, bound, wrong)]
    if not wrong.any():
        return Comparison(None, output=quantity.name, stats=stats, worst=worst)
    kind = _kind(got, quantity, wrong)
    return Comparison(kind, _message(kind, quantity, stats, worst), output=quantity.name, stats=stats, worst=worst)


def _pointed(
    quantity: Quantity, indices: np.ndarray, task: Task, inputs: Inputs
) -> tuple[Quantity, np.ndarray, np.ndarray]:
    """The values pointed at, in place of the indices; they are values of the input, so that right ones are equal."""
    values = pointed_values(task, inputs, quantity.values)
    got = pointed_values(task, inputs, indices)
    shape = values.shape
    judged = np.broadcast_to(quantity.judged, shape) if quantity.judged.size != values.size else quantity.judged
    zeros = np.broadcast_to(0.0, shape)
    return (
        Quantity(quantity.name, values, "float64", zeros, zeros, judged.reshape(shape), quantity.index),
        got,
        zeros,
    )


def _kind(got: np.ndarray, quantity: Quantity, wrong: np.ndarray) -> str:
    """unwritten_output where a wrong element still holds the pattern of fresh memory; nonfinite_mismatch where nothing
    is wrong but non-finite elements; else numerical_mismatch."""
    if quantity.dtype in FLOATS and (wrong & poisoned(got, quantity.dtype)).any():
        return "unwritten_output"
    if quantity.dtype not in FLOATS:
        return "unwritten_output" if (wrong & poisoned(got, quantity.dtype)).any() else "numerical_mismatch"
    limit = FLOATS[quantity.dtype].max
    numbers = wrong & np.isfinite(got.astype(np.float64)) & (np.abs(quantity.values) <= limit)
    return "numerical_mismatch" if numbers.any() else "nonfinite_mismatch"


def statistics(got: np.ndarray, quantity: Quantity, bound: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    """Error figures of one tensor (see `Comparison.stats`); None where no element has one."""
    reference, value = quantity.values.astype(np.float64), got.astype(np.float64)
    both = quantity.judged & np.isfinite(reference) & np.isfinite(value)
    reference, value, bound = reference[both], value[both], bound[both]
    error = np.abs(value - reference)
    size = np.abs(reference)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = error[size > 0] / size[size > 0]
        ulps = error / _spacing(size, quantity.dtype)
        ratio = np.where(error == 0, 0.0, error / bound)
    figures: dict[str, Any] = {
        "count": int(quantity.values.size),
        "judged": int(quantity.judged.sum()),
        "exceeding": int(wrong.sum()),
        "max_abs": _figure(error, np.max),
        "mean_abs": _figure(error, np.mean),
    }
    quantiles = np.quantile(error, (0.5, 0.9, 0.99)) if error.size else (None, None, None)
    for name, quantile in zip(("p50_abs", "p90_abs", "p99_abs"), quantiles, strict=True):
        figures[name] = None if quantile is None else float(quantile)
    for name, values in (("rel", relative), ("ulp", ulps)):
        figures |= {f"max_{name}": _figure(values, np.max), f"mean_{name}": _figure(values, np.mean)}
    largest = _figure(ratio, np.max)
    return figures | {"max_ratio": largest if largest is None or np.isfinite(largest) else None}


def _spacing(size: np.ndarray, dtype: str) -> np.ndarray:
    """Distance to the next value of the dtype at |x| = size; 1 for integers."""
    if dtype not in FLOATS:
        return np.ones_like(size)
    limit = FLOATS[dtype]
    _, exponent = np.frexp(np.clip(size, limit.smallest_normal, limit.max))
    return np.ldexp(limit.eps, exponent - 1)


def _figure(values: np.ndarray, of: Any) -> float | None:
    return float(of(values)) if values.size else None


def _worst(
    shown: np.ndarray, got: np.ndarray, quantity: Quantity, bound: np.ndarray, wrong: np.ndarray
) -> list[dict[str, Any]]:
    """The elements to show: wrong ones first, those by how far they pass their bound (non-finite foremost)."""
    value, reference = got.astype(np.float64), quantity.values.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.abs(value - reference) / np.maximum(bound, np.finfo(np.float64).tiny)
    excess = np.where(np.isnan(excess), np.where(wrong, np.inf, 0.0), excess)
    excess = np.where(wrong, 1.0 + excess, np.where(quantity.judged, np.minimum(excess, 1.0), -1.0)).reshape(-1)
    same = shown.shape == quantity.values.shape
    return [
        {
            "index": [int(i) for i in np.unravel_index(place, quantity.values.shape)],
            "got": plain((shown if same else got).reshape(-1)[place]),
            "expected": plain(quantity.values.reshape(-1)[place]),
        }
        for place in _largest(excess, WORST)
    ]


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` largest values, largest first and equal ones in their order, without sorting all of them."""
    if values.size <= count:
        return np.argsort(-values, kind="stable")
    least = np.partition(values, values.size - count)[values.size - count]
    above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.concatenate([above[np.argsort(-values[above], kind="stable")], equal])[:count]


def plain(value: Any) -> Any:
    """A JSON value for one element: int, bool, float, or "nan", "inf", "-inf"."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)
    return number if np.isfinite(number) else "nan" if np.isnan(number) else "inf" if number > 0 else "-inf"


def _message(kind: str, quantity: Quantity, stats: dict[str, Any], worst: list[dict[str, Any]]) -> str:
    first = worst[0]
    where = f"{quantity.name}{first['index']}"
    text = f"{where} is {_short(first['got'])}, expected {_short(first['expected'])}"
    if kind == "unwritten_output":
        text = f"{quantity.name} was not fully written: {text}"
    return f"{text}; {stats['exceeding']} of {stats['judged']} judged elements are wrong"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(text: str) -> str:
    return " ".join(str(text).split())[:500]
