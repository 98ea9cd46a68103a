"""Softmax over a dim."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import (
    DIM,
    DIMS,
    DTYPE,
    FOLLOWS,
    LANES,
    LAYOUTS,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    TO_FLOAT32,
    along,
    row_forms,
)


def softmax(input, dim, dtype=None):
    return torch.softmax(input, dim)


def terms(input, dim, dtype=None):
    return along(scale.softmax, input, dim)


TASK = Task(
    suite="tritonbench_t",
    name="softmax",
    signature="softmax(input, dim, dtype=None)",
    contract=f"""Softmax of input over dim: exp(x) / Σ exp(x). A negative dim counts from the end.
{ROWS} The result has input's shape and dtype, or dtype if given: input is then cast to it first.
{RULES}
Rows of any finite magnitude are judged: subtract the maximum before the exponential. {FOLLOWS}""",
    dims=DIMS,
    forms=row_forms(),
    reference=softmax,
    keywords=(DIM, DTYPE),
    scale=terms,
    regimes=(*ROWWISE, "moderate_large", "spread", "infinite_rows", "offset", "sorted", "ties", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        LANES,
        "Load lanes past the end as −inf, not 0.",
        "Without subtracting the maximum exp overflows from 89 in float32.",
        TO_FLOAT32,
        STRIDES,
    ),
)
