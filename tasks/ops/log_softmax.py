"""Log-softmax over the last dim."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, RULES, SAME, SOFTMAX, TO_FLOAT32, X, row_forms


def log_softmax(x):
    return torch.log_softmax(x, dim=-1)


def terms(x):
    return scale.finite(x).abs() + scale.log_sum_exp(x)


TASK = Task(
    suite="ops",
    name="log_softmax",
    signature="log_softmax(x)",
    contract=f"""Logarithm of the softmax of x over its last dimension: x − max − log Σ exp(x − max).
{X} {SAME}
{RULES}
Rows of any finite magnitude are judged, also where the softmax itself underflows (log of softmax gives −inf there).
Non-finite inputs follow torch.log_softmax: −inf stays −inf; a row with a NaN or +inf, or of nothing but −inf, is NaN
throughout.""",
    dims=DIMS,
    forms=row_forms(),
    reference=log_softmax,
    outputs=OUTPUT,
    scale=terms,
    regimes=(*SOFTMAX, "ties"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        LANES,
        "log(softmax(x)) is −inf where x lies 104 below the maximum: subtract the logarithm of the sum instead.",
        "Without subtracting the row's maximum exp overflows from 89 in float32.",
        TO_FLOAT32,
    ),
)
