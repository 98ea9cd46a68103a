"""Sum over given dims."""

import torch

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import (
    DIMS,
    DTYPE,
    FOLLOWS,
    KEEPDIM,
    LANES,
    LAYOUTS,
    OVERFLOW,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    back,
    row_forms,
    rows,
)


def sum(input, dim, keepdim=False, *, dtype=None):
    return torch.sum(input, dim, keepdim)


def terms(input, dim, keepdim=False, *, dtype=None):
    return back(scale.row_sum(rows(input, dim)), input, dim, keepdim)


def fits(input, dim, keepdim=False, *, dtype=None):
    return back(scale.sums_fit(rows(input, dim)), input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="sum",
    signature="sum(input, dim, keepdim=False, *, dtype=None)",
    contract=f"""Sum of input over dim, an int or a tuple of ints, negative ones counting from the end. keepdim=True keeps
reduced dimensions with size 1, else they are dropped.
{ROWS} The result has input's dtype, or dtype if given.
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims=DIMS,
    forms=row_forms(),
    reference=sum,
    keywords=(Keyword("dim", 1, (-1, 0, -2, [0, 1], [1]), required=True, positional=True), KEEPDIM, DTYPE),
    scale=terms,
    in_range=fits,
    regimes=(*ROWWISE, "half_sum", "overflow_f16", "offset"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=("Accumulate in float32: float16 sums of long rows stop growing.", LANES, STRIDES),
)
