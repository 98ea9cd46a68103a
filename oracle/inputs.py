"""Inputs: a case made into argument bytes, for the candidate (`call`) and for the judge (`arguments64`).

The same case gives the same bytes on any machine. A case may come from a token that a user pasted, so `build` checks all
of it and raises UsageError with one line.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from oracle import drawing, layouts
from oracle.case import Case
from oracle.dtypes import FLOATS, NUMPY, to_torch, to_torch64
from oracle.errors import UsageError
from oracle.poison import pattern
from oracle.rng import Draws
from oracle.schema import Form, Keyword, Task, Tensor, shape_entry
from oracle.values import REGIMES
from oracle.worker.protocol import Argument, Call, TensorBuffer, shrunk

ELEMENT_LIMIT = 1 << 24  # elements over all tensors of a case
EXPANDABLE = ("any", "positive", "mask")  # roles that layout `expanded` may repeat


@dataclass(frozen=True)
class Inputs:
    """The arguments of one case. `tensors` in the form's order; `keywords` all resolved, JSON values; `digest` of names,
    dtypes, shapes, layouts, logical values and keywords."""

    task: Task
    case: Case
    form: Form
    tensors: tuple[TensorBuffer, ...]
    keywords: Mapping[str, Any]
    digest: str

    @property
    def has_empty(self) -> bool:
        """True if a tensor has no elements: such a case needs no kernel launch."""
        return any(0 in buffer.shape for buffer in self.tensors)

    def call(self, reverse: bool = False, poison: int = 0, fill_lanes: bool = False) -> Call:
        """The candidate's call; storages are shared, the receiver copies them."""
        positional, keyword = self._split(lambda buffer: buffer, lambda value: value)
        return Call(positional, keyword, reverse, poison, fill_lanes)

    def arguments64(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) for reference, scale, …: fresh contiguous float64 CPU copies; integers and bools as they are."""
        return self._split(lambda buffer: to_torch64(buffer.values()), decode)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) for `eager`: fresh contiguous CPU tensors in the dtypes of the case."""
        return self._split(lambda buffer: to_torch(buffer.values()), decode)

    def _split(
        self, tensor: Callable[[TensorBuffer], Any], value: Callable[[Any], Any]
    ) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
        tensors = {buffer.name: tensor(buffer) for buffer in self.tensors}
        return arrange(self.task, self.form, tensors, {name: value(given) for name, given in self.keywords.items()})


def arrange(
    task: Task, form: Form, tensors: Mapping[str, Argument], keywords: Mapping[str, Any]
) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    """Tensors, then positional keywords, by position; the rest by name. What has its default is left out."""
    positional = [tensors[spec.name] for spec in form.tensors if not spec.keyword]
    named = {spec.name: tensors[spec.name] for spec in form.tensors if spec.keyword}

    def passed(spec: Keyword) -> bool:
        return spec.required or not same_json(keywords[spec.name], spec.default)

    leading = [spec for spec in task.keywords if spec.positional]
    while leading and not passed(leading[-1]):
        leading.pop()
    positional += [keywords[spec.name] for spec in leading]
    named |= {spec.name: keywords[spec.name] for spec in task.keywords if not spec.positional and passed(spec)}
    return tuple(positional), named


def build(task: Task, case: Case) -> Inputs:
    """Draw and lay out the tensors of a case. Raises UsageError for a case that does not fit the task."""
    form = _check(task, case)
    keywords = resolve_keywords(task, form, case.keywords)
    tensors = tuple(_buffer(task, case, tensor, keywords) for tensor in form.tensors)
    return Inputs(task, case, form, tensors, keywords, _digest(case, tensors, keywords))


def renewed(inputs: Inputs, offset: int) -> Inputs:
    """Other contents of the same kind, as a timed call gets them: every tensor's elements are rolled back by `offset`
    places in row-major order, an index's or a mask's too, and floats multiplied by `shrunk(offset)`. `inputs` must be
    contiguous."""

    def renew(buffer: TensorBuffer) -> TensorBuffer:
        values = np.roll(buffer.values().reshape(-1), -offset).reshape(buffer.shape)
        if buffer.dtype in FLOATS:
            wide = np.promote_types(values.dtype, np.float32)
            values = (values.astype(wide) * wide.type(shrunk(offset))).astype(values.dtype)
        return layouts.place(buffer.name, buffer.dtype, values, "contiguous")

    tensors = tuple(map(renew, inputs.tensors))
    return replace(inputs, tensors=tensors, digest=_digest(inputs.case, tensors, inputs.keywords))


def resolve_keywords(task: Task, form: Form, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every keyword's value: the task's default, replaced by what the form pins, replaced by what the case gives."""
    return {spec.name: spec.default for spec in task.keywords} | dict(form.keywords) | dict(given)


def decode(value: Any) -> Any:
    """A keyword's Python value from its JSON value: a list stands for a tuple, "torch.float16" for that dtype.
    Raises UsageError for any other name in torch."""
    if isinstance(value, list | tuple):
        return tuple(decode(item) for item in value)
    if isinstance(value, str) and value.startswith("torch."):
        found = getattr(torch, value.removeprefix("torch."), None)
        _require(isinstance(found, torch.dtype), f"case keyword value {value!r} is no torch dtype")
        return found
    return value


def same_json(a: Any, b: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three different values, a tuple equals a list."""
    return json.dumps(a, default=str) == json.dumps(b, default=str)


def of_tensor(name: str) -> tuple[str, str | None]:
    """NAME and TENSOR of "NAME" (every tensor: None) or "NAME:TENSOR", for layouts and regimes."""
    plain, _, tensor = name.partition(":")
    return plain, tensor or None


def _buffer(task: Task, case: Case, tensor: Tensor, keywords: Mapping[str, Any]) -> TensorBuffer:
    dtype = tensor_dtype(tensor, case.dtype)
    array = (case.values or {}).get(tensor.name)
    written = tensor.values == "out" or tensor.name in task.mutates
    layout = _for_tensor(case.layout, tensor.name, "contiguous")
    if layout == "expanded" and (written or tensor.values not in EXPANDABLE):
        layout = "contiguous"
    ignored = keywords.get(tensor.sprinkle) if tensor.sprinkle else None
    _require(ignored is None or type(ignored) is int, f"case keyword {tensor.sprinkle} must be an integer")
    if array is not None:
        logical = _explicit(tensor, array, case.dims, dtype, ignored)
        if layout == "expanded" and not np.array_equal(logical, layouts.repeats(logical), equal_nan=True):
            raise UsageError(f"case values of {tensor.name} must repeat along its first dim in layout expanded")
    else:
        logical = _drawn(case, tensor, dtype, ignored)
        if layout == "expanded":
            logical = layouts.repeats(logical)
    return layouts.place(tensor.name, dtype, logical, layout)


def tensor_dtype(tensor: Tensor, dtype: str) -> str:
    """The dtype that a tensor of a case of `dtype` has."""
    return tensor.dtype or {"index": "int64", "mask": "bool"}.get(tensor.values, dtype)


def _drawn(case: Case, tensor: Tensor, dtype: str, ignored: int | None) -> np.ndarray:
    shape = tensor.sizes(case.dims)
    regime = _for_tensor(case.regime, tensor.name, "uniform")
    stream = "" if regime == "correlated" else tensor.name
    draws = Draws(case.seed, case.task, case.dtype, case.index, case.stream, stream)
    if tensor.values == "out":
        return np.broadcast_to(pattern(dtype, 0).view(NUMPY[dtype]), shape)
    if tensor.values == "index":
        return drawing.indices(regime, draws, shape, dtype, shape_entry(tensor.high or 0, case.dims), ignored)
    if dtype == "bool":
        return drawing.mask(regime, draws, shape)
    if dtype in FLOATS:
        return drawing.floats(regime, draws, shape, dtype, tensor.values == "positive")
    return drawing.whole(regime, draws, shape, dtype)


def _explicit(tensor: Tensor, flat: list[Any], dims: Mapping[str, int], dtype: str, ignored: int | None) -> np.ndarray:
    """The tensor of a case's own values; every value must be exact in the dtype and an index in its range."""
    shape = tensor.sizes(dims)
    count = math.prod(shape)
    if not isinstance(flat, list) or len(flat) != count:
        raise UsageError(f"case values of {tensor.name} must be a flat list of {count} numbers (shape {list(shape)})")
    try:
        if not all(isinstance(value, int | float | str if dtype in FLOATS else int) for value in flat):
            raise TypeError
        wide = np.array(flat, dtype=np.float64 if dtype in FLOATS else np.int64)
        with np.errstate(over="ignore"):
            array = drawing.round_to(wide, dtype) if dtype in FLOATS else wide.astype(NUMPY[dtype])
    except (ValueError, TypeError, OverflowError):
        raise UsageError(
            f"case values of {tensor.name} must be numbers ({dtype}; a float may be nan, inf, -inf)"
        ) from None
    if wide.shape != (count,) or not np.array_equal(array.astype(wide.dtype), wide, equal_nan=dtype in FLOATS):
        raise UsageError(f"case values of {tensor.name} must be exact in {dtype}")
    if tensor.values == "index":
        outside = (wide < 0) | (wide >= shape_entry(tensor.high or 0, dims))
        if ignored is not None:
            outside &= wide != ignored
        if outside.any():
            raise UsageError(f"case values of {tensor.name} must be indices in [0, {tensor.high})")
    return array.reshape(shape)


def _for_tensor(name: str, tensor: str, default: str) -> str:
    plain, only = of_tensor(name)
    return plain if only in (None, tensor) else default


def _check(task: Task, case: Case) -> Form:
    """The case's form, if the case fits the task; what `values` holds is checked where it is used."""
    _require(case.task == task.id, f"case is of task {case.task!r}, not of {task.id}")
    forms = {form.name: form for form in task.forms}
    _known("form", case.form, forms)
    _known("dtype", case.dtype, FLOATS)
    form = forms[case.form]
    names = {tensor.name for tensor in form.tensors}
    for label, value, options in (("layout", case.layout, layouts.LAYOUTS), ("regime", case.regime, REGIMES)):
        plain, colon, only = str(value).partition(":")
        _known(label, plain, options)
        _known(f"{label} tensor", only if colon else next(iter(names)), names)
    for label in ("seed", "index"):
        _require(type(getattr(case, label)) is int, f"case {label} must be an integer")
    _require(isinstance(case.stream, str), "case stream must be a name")
    _check_dims(task, case, form)
    for label, given, known in (
        ("keywords", case.keywords, {keyword.name for keyword in task.keywords}),
        ("values", case.values or {}, names),
    ):
        _require(isinstance(given, Mapping), f"case {label} must be an object of names")
        for name in given:
            _known(label, name, known)
    for value in case.keywords.values():
        decode(value)
    return form


def _known(label: str, name: Any, known: Iterable[str]) -> None:
    """`known` is what the task or the oracle has under that label."""
    if not isinstance(name, str) or name not in known:
        raise UsageError(f"case {label} {name!r}: must be one of {', '.join(sorted(known)) or '(none)'}")


def _check_dims(task: Task, case: Case, form: Form) -> None:
    _require(
        isinstance(case.dims, Mapping) and set(case.dims) == set(task.dims),
        f"case dims must name exactly {', '.join(task.dims) or 'no dims'}",
    )
    for name, size in case.dims.items():
        _require(type(size) is int and size >= 0, f"case dim {name} must be a size, not {size!r}")
        _require(
            size > 0 or task.dims[name].empty, f"case dim {name} must be at least 1: {task.id} states no empty {name}"
        )
    total = 0
    for tensor in form.tensors:
        try:
            shape = tensor.sizes(case.dims)
        except (ValueError, ZeroDivisionError):
            shape = (-1,)
        _require(min(shape, default=0) >= 0, f"case dims {dict(case.dims)} give {tensor.name} no shape")
        total += math.prod(shape)
    _require(total <= ELEMENT_LIMIT, f"case has {total} elements; at most {ELEMENT_LIMIT}: use smaller dims")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(message)


def _digest(case: Case, tensors: tuple[TensorBuffer, ...], keywords: Mapping[str, Any]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for buffer in tensors:
        state.update(json.dumps([buffer.name, buffer.dtype, buffer.shape, buffer.strides, buffer.offset]).encode())
        state.update(np.ascontiguousarray(buffer.values()).tobytes())
    state.update(json.dumps([case.task, case.form, keywords], sort_keys=True).encode())
    return state.hexdigest()
