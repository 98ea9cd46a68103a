"""ReLU of input·other. `inplace` is left out: whether input then holds the product or its ReLU is not described."""

import torch

from oracle.schema import Task

from ._common import (
    DIMS,
    ELEMENTWISE,
    LAYOUTS,
    MASK,
    NUMBER,
    NUMBER_FORMS,
    OUT,
    PROMOTED,
    RULES,
    STRIDES,
    broadcast_forms,
    forms,
    out_form,
    written,
)


@written
def mul_relu(input, other):
    return torch.relu(input * other)


TASK = Task(
    suite="tritonbench_t",
    name="mul_relu",
    signature="mul_relu(input, other, inplace=False, out=None)",
    contract=f"""max(0, input·other), elementwise; other is a tensor or a number.
input and other have 0 to 4 dimensions of any size (0: an empty result), broadcastable against each other, and one dtype,
float32, float16 or bfloat16. inplace is not used. {OUT}
{RULES}
NaN stays NaN, and 0·inf is NaN.""",
    dims=DIMS,
    forms=(
        *forms("input", "other"),
        out_form("input", "other"),
        *NUMBER_FORMS,
        *broadcast_forms(tier="keywords"),
    ),
    reference=mul_relu,
    outputs=PROMOTED,
    keywords=(NUMBER,),
    mutates=("out",),
    regimes=ELEMENTWISE,
    layouts=(*LAYOUTS, "transposed:other"),
    hazards=("tl.maximum(x, 0) gives 0 for NaN.", "other may be a Python number.", MASK, STRIDES),
)
