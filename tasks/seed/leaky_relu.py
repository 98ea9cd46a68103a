"""Leaky ReLU, elementwise on a rank-3 tensor."""

import torch

from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, X


def leaky_relu(x):
    return torch.nn.functional.leaky_relu(x, 0.01)


TASK = Task(
    suite="seed",
    name="leaky_relu",
    signature="leaky_relu(x)",
    contract=f"""Leaky ReLU of x, elementwise: x where x > 0, else 0.01·x.
{X} {COMMON}
Non-finite inputs follow torch.nn.functional.leaky_relu: NaN stays NaN, +inf and −inf stay infinite.""",
    dims=DIMS,
    forms=FORMS,
    reference=leaky_relu,
    outputs=OUTPUT,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "The slope is 0.01.",
        "tl.maximum(x, 0.01·x) loses NaN.",
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-5, "float16": 1e-3}),
)
