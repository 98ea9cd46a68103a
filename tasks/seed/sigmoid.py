"""Sigmoid, elementwise on a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, TO_FLOAT32, X


def sigmoid(x):
    return torch.sigmoid(x)


TASK = Task(
    suite="seed",
    name="sigmoid",
    signature="sigmoid(x)",
    contract=f"""Sigmoid of x, elementwise: 1 / (1 + exp(−x)).
{X} {COMMON}
Every finite magnitude is judged, also where the result is tiny (x = −20): keep its relative accuracy, which 0.5·(1 +
tanh(x/2)) does not. Non-finite inputs follow torch.sigmoid: +inf gives 1, −inf gives 0, NaN gives NaN.""",
    dims=DIMS,
    forms=FORMS,
    reference=sigmoid,
    outputs=OUTPUT,
    scale=scale.sigmoid,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "exp(x)/(1 + exp(x)) is inf/inf from x = 89 on.",
        TO_FLOAT32,
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-4, "float16": 5e-2}),
)
