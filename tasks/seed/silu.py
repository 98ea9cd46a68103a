"""SiLU, elementwise on a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, TO_FLOAT32, X


def silu(x):
    return torch.nn.functional.silu(x)


TASK = Task(
    suite="seed",
    name="silu",
    signature="silu(x)",
    contract=f"""SiLU of x, elementwise: x · sigmoid(x).
{X} {COMMON}
Every finite magnitude is judged, also where the result is tiny (x = −20): keep its relative accuracy. Non-finite inputs
follow torch.nn.functional.silu: +inf gives +inf, −inf and NaN give NaN.
Results between 4e-38 and 1e-36 are not judged, since float32 may flush sigmoid(x) to 0 there.""",
    dims=DIMS,
    forms=FORMS,
    reference=silu,
    outputs=OUTPUT,
    scale=scale.silu,
    in_range=scale.silu_fits,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "sigmoid(x), not sigmoid(2x); and x times it.",
        TO_FLOAT32,
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-4, "float16": 5e-2}),
)
