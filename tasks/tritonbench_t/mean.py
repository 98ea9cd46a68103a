"""Mean over given dims."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    DIMS,
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
    back,
    beside,
    destination,
    row_forms,
    rows,
    written,
)


@written
def mean(input, dim, keepdim=False, dtype=None):
    return torch.mean(input, dim, keepdim)


@beside
def terms(input, dim, keepdim=False, dtype=None):
    x = rows(input, dim)
    return back(scale.row_sum(x) / x.shape[-1], input, dim, keepdim)


@beside
def fits(input, dim, keepdim=False, dtype=None):
    return back(scale.sums_fit(rows(input, dim)), input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="mean",
    signature="mean(input, dim, keepdim=False, dtype=None, out=None)",
    contract=f"""Mean of input over dim, an int or a tuple of ints, negative ones counting from the end. keepdim=True keeps
reduced dimensions with size 1, else they are dropped.
{ROWS} The result has input's dtype, or dtype if given. {OUT}
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims=DIMS,
    forms=(
        *row_forms(),
        Form(
            "out",
            (Tensor("input", ("R", "N")), destination("R")),
            tier="keywords",
            keywords={"dim": 1},
            keyword_values={"keepdim": (), "dtype": ()},
        ),
    ),
    reference=mean,
    keywords=(Keyword("dim", 1, (-1, 0, -2, [0, 1], [1]), required=True, positional=True), KEEPDIM, DTYPE),
    scale=terms,
    in_range=fits,
    mutates=("out",),
    regimes=(*ROWWISE, "half_sum", "overflow_f16", "offset"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Divide by the number of elements that were summed, not by the block size.",
        "Accumulate in float32: float16 sums of long rows stop growing.",
        LANES,
        STRIDES,
    ),
)
