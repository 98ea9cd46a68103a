"""Square root of ReLU. `inplace` is left out: whether input then holds the ReLU or its root is not described."""

import torch

from oracle.schema import Task

from ._common import (
    DIMS,
    ELEMENTWISE,
    INPUT,
    LAYOUTS,
    MASK,
    OUT,
    RULES,
    SAME,
    STRIDES,
    TO_FLOAT32,
    beside,
    forms,
    normal,
    out_form,
    written,
)


@written
def relu_sqrt(input):
    return torch.sqrt(torch.relu(input))


TASK = Task(
    suite="tritonbench_t",
    name="relu_sqrt",
    signature="relu_sqrt(input, inplace=False, out=None)",
    contract=f"""√max(0, x) of input, elementwise.
{INPUT} {SAME} inplace is not used. {OUT}
{RULES}
NaN stays NaN. Positive inputs below the smallest normal float32 are not judged.""",
    dims=DIMS,
    forms=(*forms("input"), out_form("input")),
    reference=relu_sqrt,
    in_range=beside(normal),
    mutates=("out",),
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=("tl.maximum(x, 0) gives 0 for NaN.", TO_FLOAT32, MASK, STRIDES),
)
