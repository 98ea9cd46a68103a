"""SiLU, elementwise."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, SAME, TO_FLOAT32, X, forms


def silu(x):
    return F.silu(x)


TASK = Task(
    suite="ops",
    name="silu",
    signature="silu(x)",
    contract=f"""SiLU of x, elementwise: x · sigmoid(x).
{X} {SAME}
{RULES}
Every finite magnitude is judged, also where the result is tiny (x = −20): keep its relative accuracy. Non-finite inputs
follow torch.nn.functional.silu: +inf gives +inf, −inf and NaN give NaN. Results between 4e-38 and 1e-36 are not judged,
since float32 may flush sigmoid(x) to 0 there.""",
    dims=DIMS,
    forms=forms("x"),
    reference=silu,
    outputs=OUTPUT,
    scale=scale.silu,
    in_range=scale.silu_fits,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        TO_FLOAT32,
        "A grid over rows and columns must use each block size for its own side.",
        MASK,
    ),
)
