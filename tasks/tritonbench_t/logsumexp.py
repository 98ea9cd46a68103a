"""Logarithm of the sum of exponentials over a dim."""

import torch

from oracle import scale
from oracle.schema import Form, Task, Tensor

from ._common import (
    DIM,
    DIMS,
    FOLLOWS,
    KEEPDIM,
    LANES,
    LAYOUTS,
    OUT,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    TO_FLOAT32,
    back,
    beside,
    destination,
    row_forms,
    rows,
    written,
)


@written
def logsumexp(input, dim, keepdim=False):
    return torch.logsumexp(input, dim, keepdim)


@beside
def terms(input, dim, keepdim=False):
    return back(scale.log_sum_exp(rows(input, dim))[..., 0], input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="logsumexp",
    signature="logsumexp(input, dim, keepdim=False, *, out=None)",
    contract=f"""log Σ exp(input) over dim. A negative dim counts from the end; keepdim=True keeps it with size 1, else it
is dropped.
{ROWS} The result has input's dtype. {OUT}
{RULES}
Rows of any finite magnitude are judged: subtract the maximum first. {FOLLOWS}""",
    dims=DIMS,
    forms=(
        *row_forms(),
        Form(
            "out",
            (Tensor("input", ("R", "N")), destination("R")),
            tier="keywords",
            keywords={"dim": 1},
            keyword_values={"keepdim": ()},
        ),
    ),
    reference=logsumexp,
    keywords=(DIM, KEEPDIM),
    scale=terms,
    mutates=("out",),
    regimes=(*ROWWISE, "moderate_large", "spread", "infinite_rows", "offset", "sorted", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Without subtracting the maximum exp overflows from 89 in float32.",
        "A row of nothing but −inf gives −inf: −inf − −inf is NaN.",
        LANES,
        TO_FLOAT32,
        STRIDES,
    ),
)
