"""ReLU, elementwise on a rank-3 tensor."""

import torch

from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, X


def relu(x):
    return torch.relu(x)


TASK = Task(
    suite="seed",
    name="relu",
    signature="relu(x)",
    contract=f"""ReLU of x, elementwise: x where x > 0, else 0.
{X} {COMMON}
The result is exact. Non-finite inputs follow torch.relu: NaN stays NaN, +inf stays, −inf gives 0.""",
    dims=DIMS,
    forms=FORMS,
    reference=relu,
    outputs=OUTPUT,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "tl.maximum(x, 0) gives 0 for NaN: use tl.where(x <= 0, 0, x) or propagate NaN.",
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-5, "float16": 1e-3}),
)
