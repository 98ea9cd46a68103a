"""Whether a task agrees with itself: its base case is finite and judged, and plain PyTorch passes its own tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from oracle import layouts
from oracle.case import Case
from oracle.compare import compare
from oracle.dtypes import NUMPY, torch_dtype
from oracle.inputs import Inputs, build
from oracle.reference import Expected, ReferenceCache
from oracle.schema import CORE_TIERS, Task, as_tuple
from oracle.tolerance import policy
from oracle.worker.protocol import RETURNED, Outcome, RawTensor


def unsound(task: Task, cases: Sequence[Case], references: ReferenceCache) -> list[str]:
    """What is wrong with a task, each in one line that says what to mend. `cases` begin with the base case."""
    found = _base(references.get(task, build(task, cases[0])))
    for case in cases:
        if case.tier in CORE_TIERS and case.dtype == "float32":
            inputs = build(task, case)
            if fault := _eager(task, inputs, references.get(task, inputs)):
                return [*found, fault]
    return found


def _base(expected: Expected) -> list[str]:
    found = []
    for quantity in (*expected.outputs, *expected.mutated.values()):
        if not np.isfinite(quantity.values.astype(np.float64)).all():
            found.append(f"`reference` is not finite on the base case ({quantity.name}): mend it, or the base sizes")
        if not quantity.judged.all():
            found.append(f"`in_range` leaves elements of {quantity.name} unjudged on the base case: widen it")
    return found


def _eager(task: Task, inputs: Inputs, expected: Expected) -> str | None:
    """What is wrong with plain PyTorch in float32 on a case, by the ordinary comparison; None where it agrees."""
    name = "eager" if task.eager else "reference"
    case = inputs.case
    where = f"on float32 form {case.form} with {', '.join(f'{dim}={size}' for dim, size in case.dims.items())}"
    args, kwargs = inputs.arguments()
    try:
        with torch.no_grad():
            result = (task.eager or task.reference)(*args, **kwargs)
    except Exception as error:
        return f"`{name}` raises {where}: {type(error).__name__}: {' '.join(str(error).split())}"
    comparison = compare(expected, as_outcome(inputs, args, kwargs, result), task, inputs, policy())
    if comparison.kind is None:
        return None
    return (
        f"`{name}` disagrees with the float64 `reference` {where} ({comparison.kind}: {comparison.message}): mend the "
        "wrong one, or state in `scale` all that float32 arithmetic adds up on the way"
    )


def as_outcome(
    inputs: Inputs,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
    dtypes: Sequence[str] | None = None,
) -> Outcome:
    """What one of the task's own functions returned and left in its arguments, as if a candidate had been called with
    contiguous inputs. `dtypes` rounds each result (None: as it is); arguments are rounded to the dtypes of the case."""
    structure = "None" if result is None else "tensor" if isinstance(result, torch.Tensor) else "tuple"
    tensors = () if result is None else as_tuple(result)
    rounded = tensors if dtypes is None else [t.to(torch_dtype(d)) for t, d in zip(tensors, dtypes, strict=True)]
    after = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, torch.Tensor)]
    storages = [
        layouts.place(buffer.name, buffer.dtype, _array(tensor.to(torch_dtype(buffer.dtype))), "contiguous").storage
        for buffer, tensor in zip(inputs.call().buffers(), after, strict=True)
    ]
    return Outcome(RETURNED, structure, tuple(map(_raw, rounded)), storages=tuple(storages))


def _raw(tensor: torch.Tensor) -> RawTensor:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return RawTensor(dtype, tuple(tensor.shape), True, "cpu", _array(tensor).tobytes())


def _array(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(NUMPY["bfloat16"])
    return plain.numpy()
