"""Outcomes made by hand, as a candidate's process would report them."""

from dataclasses import replace

import numpy as np

from oracle.case import Case
from oracle.dtypes import NUMPY
from oracle.inputs import Inputs, build
from oracle.schema import Dim, Form, Task, Tensor
from oracle.worker.protocol import RETURNED, Outcome, RawTensor

DTYPE_NAMES = {dtype: name for name, dtype in NUMPY.items()}


X = Tensor("x", ("R", "N"))


def task_of(reference, tensors=(X,), *, dims=("R", "N"), **fields) -> Task:
    """A task whose reference is the given function; `dims` are names, or base sizes by name."""
    return Task(
        suite="test",
        name=fields.pop("name", "op"),
        signature="op(x)",
        contract="",
        dims={name: Dim((1, 2, 3), dims[name] if isinstance(dims, dict) else 4) for name in dims},
        forms=fields.pop("forms", (Form("base", tuple(tensors)),)),
        reference=reference,
        **fields,
    )


def inputs_of(task: Task, dtype="float32", values=None, **fields) -> Inputs:
    """A built case; sizes by keyword, everything else of `Case` too."""
    names = {name: fields.pop(name) for name in list(fields) if name in task.dims}
    dims = {name: names.get(name, dim.base) for name, dim in task.dims.items()}
    form = fields.pop("form", task.forms[0].name)
    return build(task, Case(task.id, form, dims, dtype, values=values, **fields))


def raw(array, cast: str | None = None, **changes) -> RawTensor:
    """A returned tensor with these values, cast to a dtype if one is given; `changes` to what it reports."""
    array = np.asarray(array) if cast is None else np.asarray(array).astype(NUMPY[cast])
    return replace(RawTensor(DTYPE_NAMES[array.dtype], array.shape, True, "cpu", array.tobytes()), **changes)


def returned(inputs: Inputs, *outputs: RawTensor | np.ndarray, **changes) -> Outcome:
    """A call that returned these outputs and left its inputs alone."""
    tensors = tuple(output if isinstance(output, RawTensor) else raw(output) for output in outputs)
    return replace(
        Outcome(
            RETURNED,
            "tensor" if len(tensors) == 1 else "tuple",
            tensors,
            storages=tuple(buffer.storage.copy() for buffer in inputs.call().buffers()),
            launches=1,
        ),
        **changes,
    )
