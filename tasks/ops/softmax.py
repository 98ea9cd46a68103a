"""Softmax over the last dim."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, RULES, SAME, SOFTMAX, X, row_forms


def softmax(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    suite="ops",
    name="softmax",
    signature="softmax(x)",
    contract=f"""Softmax of x over its last dimension: exp(x − max) / Σ exp(x − max).
{X} {SAME}
{RULES}
Subtract the row's maximum before the exponential (and before any scaling by log2 e): rows of any finite magnitude are
judged. Non-finite inputs follow torch.softmax: −inf gets 0; a row with a NaN or +inf, or of nothing but −inf, is NaN
throughout.""",
    dims=DIMS,
    forms=row_forms(),
    reference=softmax,
    outputs=OUTPUT,
    scale=scale.softmax,
    regimes=(*SOFTMAX, "ties"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        LANES,
        "Load lanes past the end as −inf, not 0.",
        "Without subtracting the row's maximum exp overflows from 89 in float32.",
        "Sum in float32: float16 sums of long rows stop growing.",
    ),
)
