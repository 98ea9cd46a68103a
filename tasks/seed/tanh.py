"""Hyperbolic tangent, elementwise on a rank-3 tensor."""

import torch

from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, TO_FLOAT32, X


def tanh(x):
    return torch.tanh(x)


def near_one(x):
    """2·sigmoid(2x) − 1 subtracts numbers of size 1."""
    return 1 + torch.tanh(x).abs()


TASK = Task(
    suite="seed",
    name="tanh",
    signature="tanh(x)",
    contract=f"""Hyperbolic tangent of x, elementwise.
{X} {COMMON}
Every finite magnitude is judged: the result tends to ±1 and never overflows. The error may be a few float32 roundings
of 1, also near x = 0 (so that 2·sigmoid(2x) − 1 is right). Non-finite inputs follow torch.tanh: ±inf gives ±1, NaN
gives NaN.""",
    dims=DIMS,
    forms=FORMS,
    reference=tanh,
    outputs=OUTPUT,
    scale=near_one,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "(e^x − e^−x)/(e^x + e^−x) is inf/inf from x = 89 on; 2·sigmoid(2x) − 1 is safe.",
        "tl.tanh and tl.math.tanh do not exist.",
        TO_FLOAT32,
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-4, "float16": 5e-2}),
)
