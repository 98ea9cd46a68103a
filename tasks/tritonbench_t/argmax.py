"""Index of a maximum over a dim; which of equal maxima is not described."""

import torch

from oracle.schema import Keyword, Output, Task

from ._common import DIMS, EXTREMES, KEEPDIM, LANES, LAYOUTS, ROWS, RULES, STRIDES, row_forms


def argmax(input, dim, keepdim=False):
    return torch.argmax(input, dim, keepdim)


def pointed(input, dim, keepdim=False, *, indices):
    if dim is None:
        return input.flatten()[indices]
    return input.gather(dim, indices if keepdim else indices.unsqueeze(dim))


TASK = Task(
    suite="tritonbench_t",
    name="argmax",
    signature="argmax(input, dim, keepdim=False)",
    contract=f"""Index of a maximum of input over dim, int64; dim=None means the index in the flattened input. A negative
dim counts from the end; keepdim=True keeps reduced dimensions with size 1, else they are dropped. Any of equal maxima is
right.
{ROWS}
{RULES}
NaN counts as the maximum; infinities count as numbers.""",
    dims=DIMS,
    forms=row_forms(),
    reference=argmax,
    keywords=(Keyword("dim", 1, (None, -1, 0, -2), required=True, positional=True), KEEPDIM),
    outputs=(Output(dtype="int64", index="value"),),
    pointed=pointed,
    regimes=EXTREMES,
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "The result is int64, also where the kernel computes in int32.",
        "Load lanes past the end as −inf, not 0, and let no such lane win.",
        "NaN counts as the maximum; comparisons with NaN are False.",
        LANES,
        STRIDES,
    ),
)
