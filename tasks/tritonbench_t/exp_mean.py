"""Mean of the exponential over all or given dims."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import (
    DIM_OR_ALL,
    DTYPE,
    FOLLOWS,
    KEEPDIM,
    LANES,
    LAYOUTS,
    OUT,
    OVERFLOW,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    TO_FLOAT32,
    WHOLE_DIMS,
    WHOLE_FORMS,
    back,
    beside,
    dims_of,
    rows,
    written,
)


@written
def exp_mean(input, dim=None, keepdim=False, dtype=None):
    return torch.exp(input).mean(dims_of(input, dim), keepdim)


@beside
def terms(input, dim=None, keepdim=False, dtype=None):
    x = rows(input, dim)
    values = scale.finite(torch.exp(x))
    size = scale.row_sum(values) + (values * scale.finite(x).abs()).sum(-1)
    return back(size / x.shape[-1], input, dim, keepdim)


@beside
def fits(input, dim=None, keepdim=False, dtype=None):
    return back(scale.sums_fit(torch.exp(rows(input, dim))), input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="exp_mean",
    signature="exp_mean(input, dim=None, keepdim=False, dtype=None, out=None)",
    contract=f"""Mean of exp(input) over dim: an int, a tuple of ints, or None for all dimensions (a 0-d result).
keepdim=True keeps reduced dimensions with size 1, else they are dropped.
{ROWS} The result has input's dtype, or dtype if given. {OUT}
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims=WHOLE_DIMS,
    forms=WHOLE_FORMS,
    reference=exp_mean,
    keywords=(DIM_OR_ALL, KEEPDIM, DTYPE),
    scale=terms,
    in_range=fits,
    mutates=("out",),
    regimes=(*ROWWISE, "half_sum", "sorted"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=("exp of a lane past the end that was loaded as 0 is 1.", LANES, TO_FLOAT32, STRIDES),
)
