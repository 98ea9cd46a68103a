"""Leaky ReLU, elementwise, for any slope."""

import torch
import torch.nn.functional as F

from oracle.schema import Keyword, Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, SAME, X, forms


def leaky_relu(x, negative_slope=0.01):
    return torch.where(x > 0, x, x * negative_slope)


def eager(x, negative_slope=0.01):
    return F.leaky_relu(x, negative_slope)


TASK = Task(
    suite="ops",
    name="leaky_relu",
    signature="leaky_relu(x, negative_slope=0.01)",
    contract=f"""Leaky ReLU of x, elementwise: x where x > 0, else negative_slope·x. The slope may be any number, also
above 1, 0 or negative.
{X} {SAME}
{RULES}
Non-finite inputs follow torch.nn.functional.leaky_relu: NaN stays NaN, infinities by the formula (slope 0: −inf gives
NaN).""",
    dims=DIMS,
    forms=forms("x"),
    reference=leaky_relu,
    outputs=OUTPUT,
    keywords=(Keyword("negative_slope", 0.01, (0.2, 1.5, 0.0, -0.5)),),
    eager=eager,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "max(x, slope·x) is right only for slopes in [0, 1], and loses NaN.",
        "Use the argument, not 0.01.",
        MASK,
    ),
)
