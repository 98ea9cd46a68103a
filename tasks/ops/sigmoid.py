"""Sigmoid, elementwise."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, SAME, TO_FLOAT32, X, forms


def sigmoid(x):
    return torch.sigmoid(x)


TASK = Task(
    suite="ops",
    name="sigmoid",
    signature="sigmoid(x)",
    contract=f"""Sigmoid of x, elementwise: 1 / (1 + exp(−x)).
{X} {SAME}
{RULES}
Every finite magnitude is judged, also where the result is tiny (x = −20): keep its relative accuracy, which 0.5·(1 +
tanh(x/2)) does not. Non-finite inputs follow torch.sigmoid: +inf gives 1, −inf gives 0, NaN gives NaN.""",
    dims=DIMS,
    forms=forms("x"),
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
)
