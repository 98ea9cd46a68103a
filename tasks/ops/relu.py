"""ReLU, elementwise."""

import torch

from oracle.schema import Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, SAME, X, forms


def relu(x):
    return torch.relu(x)


TASK = Task(
    suite="ops",
    name="relu",
    signature="relu(x)",
    contract=f"""ReLU of x, elementwise: x where x > 0, else 0.
{X} {SAME}
{RULES}
The result is exact. Non-finite inputs follow torch.relu: NaN stays NaN, +inf stays, −inf gives 0.""",
    dims=DIMS,
    forms=forms("x"),
    reference=relu,
    outputs=OUTPUT,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "tl.maximum(x, 0) gives 0 for NaN: use tl.where(x <= 0, 0, x) or propagate NaN.",
        MASK,
    ),
)
