"""What a right implementation returns: a task's float64 reference on one case, with what the tolerance needs beside it.

The reference sees the inputs as rounded to the test dtype; its results are kept in float64, never rounded.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import torch

from oracle.errors import InfrastructureError
from oracle.inputs import Inputs
from oracle.schema import Output, Task

CACHE_BYTES = 256 << 20


@dataclass(frozen=True)
class Quantity:
    """One expected tensor: an output, or an argument that changes by contract. All arrays have its shape.

    values   reference results: float64, or the reference's own integers or booleans
    dtype    the dtype that the candidate's tensor must have
    scale    sum of absolute float32 terms (`Task.scale`); |values| where the task states none
    storage  magnitude of terms rounded to the test dtype on the way (`Task.storage`); 0 where the task states none
    judged   False where the task's magnitude range excludes the element
    """

    name: str
    values: np.ndarray
    dtype: str
    scale: np.ndarray
    storage: np.ndarray
    judged: np.ndarray
    index: str | None = None
    contiguous: bool | None = None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.values, self.scale, self.storage, self.judged))


@dataclass(frozen=True)
class Expected:
    """What a case must give. `structure`: "tensor", "tuple", or "None" where the reference returns nothing (then the
    candidate's return value is not judged). `mutated` holds the arguments in `Task.mutates` as they must be left."""

    structure: str
    outputs: tuple[Quantity, ...]
    mutated: dict[str, Quantity] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(quantity.nbytes for quantity in (*self.outputs, *self.mutated.values()))

    def constant(self) -> bool:
        """Every output holds one value throughout: such a case cannot show that an answer depends on the input."""
        return all(np.unique(quantity.values).size <= 1 for quantity in (*self.outputs, *self.mutated.values()))


def reference(task: Task, inputs: Inputs) -> Expected:
    """Compute what `task` must give on `inputs`.

    Raises InfrastructureError, naming the task, its function and the case, where the task's own code fails: that is
    never the candidate's fault.
    """
    result, arguments = _call(task, "reference", task.reference, inputs)
    outputs = _tensors(result)
    if len(outputs) != len(task.outputs) and result is not None:
        raise _broken(task, "reference", inputs, f"returned {len(outputs)} tensors, outputs states {len(task.outputs)}")
    changed = [arguments[name] for name in task.mutates if name in arguments]
    arrays = [_numpy(tensor) for tensor in (*outputs, *changed)]
    beside = _Beside(task, inputs, arrays)
    rules = [
        *((rule.name, _dtype(rule, task, inputs), rule) for rule in task.outputs[: len(outputs)]),
        *((name, _argument_dtype(inputs, name), Output(name)) for name in task.mutates if name in arguments),
    ]
    scales, storages, ranges = beside.scales(), beside.storages(), beside.ranges()
    quantities = [
        Quantity(name, values, dtype, scale, storage, judged, rule.index, rule.contiguous)
        for (name, dtype, rule), values, scale, storage, judged in zip(
            rules, arrays, scales, storages, ranges, strict=True
        )
    ]
    return Expected(
        structure="None" if result is None else "tensor" if isinstance(result, torch.Tensor) else "tuple",
        outputs=tuple(quantities[: len(outputs)]),
        mutated={quantity.name: quantity for quantity in quantities[len(outputs) :]},
    )


def pointed_values(task: Task, inputs: Inputs, indices: np.ndarray) -> np.ndarray:
    """Values that an index output points at (`Task.pointed`), in float64.

    Raises IndexError where an index points outside, InfrastructureError where the task states no `pointed`.
    """
    if task.pointed is None:
        raise _broken(task, "pointed", inputs, 'is missing, but an output has index="value"')
    if (indices < 0).any():
        raise IndexError("negative index")
    args, kwargs = inputs.arguments64()
    try:
        with torch.no_grad():
            return _numpy(task.pointed(*args, **kwargs, indices=torch.from_numpy(indices.astype(np.int64))))
    except (IndexError, RuntimeError) as error:
        raise IndexError(str(error)) from None


class _Beside:
    """A task's scale, storage and range on a case, broadcast to the expected tensors."""

    def __init__(self, task: Task, inputs: Inputs, arrays: Sequence[np.ndarray]) -> None:
        self.task, self.inputs, self.arrays = task, inputs, arrays

    def scales(self) -> list[np.ndarray]:
        """A scale that is not finite (0 · ∞ on the way) says nothing: |reference| takes its place."""
        stated = self._stated("scale", self.task.scale)
        return [
            size if given is None else np.where(np.isfinite(given), np.abs(given), size)
            for given, size in zip(stated, map(_magnitude, self.arrays), strict=True)
        ]

    def storages(self) -> list[np.ndarray]:
        return [
            np.broadcast_to(0.0, array.shape) if given is None else np.where(np.isfinite(given), np.abs(given), 0.0)
            for given, array in zip(self._stated("storage", self.task.storage), self.arrays, strict=True)
        ]

    def ranges(self) -> list[np.ndarray]:
        return [
            np.broadcast_to(True, array.shape) if given is None else given.astype(bool)
            for given, array in zip(self._stated("in_range", self.task.in_range), self.arrays, strict=True)
        ]

    def _stated(self, name: str, function: Callable[..., Any] | None) -> list[np.ndarray | None]:
        """One array per expected tensor: entries of a tuple in order (outputs, then changed arguments); a single
        tensor stands for the first one, or for all of them if it is a range."""
        if function is None:
            return [None] * len(self.arrays)
        result, _ = _call(self.task, name, function, self.inputs)
        if isinstance(result, torch.Tensor):
            result = (result,) * (len(self.arrays) if name == "in_range" else 1)
        given = [*result, *[None] * len(self.arrays)][: len(self.arrays)]
        try:
            return [
                None if tensor is None else np.broadcast_to(_numpy(torch.as_tensor(tensor)), array.shape)
                for tensor, array in zip(given, self.arrays, strict=True)
            ]
        except ValueError as error:
            raise _broken(self.task, name, self.inputs, str(error)) from None


def _call(task: Task, name: str, function: Callable[..., Any], inputs: Inputs) -> tuple[Any, dict[str, torch.Tensor]]:
    """Result of one of the task's own functions, and the tensor arguments by name as it left them."""
    args, kwargs = inputs.arguments64()
    try:
        with torch.no_grad():
            result = function(*args, **kwargs)
    except Exception as error:
        raise _broken(task, name, inputs, f"raised {type(error).__name__}: {error}") from error
    tensors = task.form(inputs.case.form).tensors
    by_place = zip([tensor.name for tensor in tensors if not tensor.keyword], args, strict=False)
    return result, {**dict(by_place), **{t.name: kwargs[t.name] for t in tensors if t.name in kwargs}}


def _broken(task: Task, name: str, inputs: Inputs, why: str) -> InfrastructureError:
    case = json.dumps(inputs.case.with_(values=None).to_json(), sort_keys=True)
    return InfrastructureError(f"task {task.id}: its own `{name}` {' '.join(why.split())} (case {case})")


def _tensors(result: Any) -> tuple[torch.Tensor, ...]:
    if result is None:
        return ()
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    """A copy in float64; integers and booleans as they are."""
    plain = tensor.detach().resolve_neg()
    return (plain.double() if plain.is_floating_point() else plain).contiguous().clone().numpy()


def _magnitude(values: np.ndarray) -> np.ndarray:
    return np.abs(values.astype(np.float64))


def _argument_dtype(inputs: Inputs, name: str) -> str:
    return next(tensor.dtype for tensor in inputs.tensors if tensor.name == name)


def _dtype(rule: Output, task: Task, inputs: Inputs) -> str:
    """The dtype that an output must have, by the rules of `schema.Output`."""
    _, kwargs = inputs.arguments64()
    override = inputs.case.keywords.get("dtype", kwargs.get("dtype"))
    if override is not None and rule.index is None and any(keyword.name == "dtype" for keyword in task.keywords):
        return str(override).removeprefix("torch.")
    if rule.dtype not in ("input", "promote"):
        return rule.dtype
    floating = [tensor for tensor in inputs.tensors if getattr(torch, tensor.dtype).is_floating_point]
    tensors = floating or list(inputs.tensors)
    if rule.dtype == "input":
        return tensors[0].dtype
    ranked = [tensor for tensor in tensors if tensor.shape] or tensors  # PyTorch: a 0-d tensor does not promote
    promoted = reduce(torch.promote_types, (getattr(torch, tensor.dtype) for tensor in ranked))
    return str(promoted).removeprefix("torch.")


class ReferenceCache:
    """Expected results by case, computed once each and shared by threads; the oldest go once `limit` bytes are passed."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self.limit = limit
        self.computed = 0
        self._held = 0  # bytes of results
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, ...], _Entry] = OrderedDict()

    def get(self, task: Task, inputs: Inputs) -> Expected:
        """As `reference`; two threads that ask for the same case wait for one computation."""
        case = inputs.case
        key = (task.id, task.digest, case.form, json.dumps(dict(case.keywords), sort_keys=True), inputs.digest)
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.expected is None:
                entry.expected = reference(task, inputs)
                with self._lock:
                    self.computed += 1
                    self._held += entry.expected.nbytes
                    self._trim(entry)
            return entry.expected

    def _trim(self, newest: _Entry) -> None:
        """Drop the oldest results; the newest stays, whatever its size, and so do those being computed."""
        if self._held <= self.limit:
            return
        for key, entry in list(self._entries.items()):
            if entry.expected is not None and entry is not newest and self._held > self.limit:
                self._held -= entry.expected.nbytes
                del self._entries[key]


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    expected: Expected | None = None
