"""Maximum over a dim, with its index. `out`, a pair of destinations, is left out."""

import torch

from oracle.schema import Output, Task

from ._common import DIM, DIMS, EXTREMES, KEEPDIM, LANES, LAYOUTS, ROWS, RULES, STRIDES, row_forms


def max(input, dim, keepdim=False):
    found = torch.max(input, dim, keepdim)
    return found.values, found.indices


TASK = Task(
    suite="tritonbench_t",
    name="max",
    signature="max(input, dim, keepdim=False, *, out=None)",
    contract=f"""A tuple (values, indices): the maximum of input over dim, and the index of the first of equal maxima,
int64. A negative dim counts from the end; keepdim=True keeps it with size 1, else it is dropped. out is not used.
{ROWS} values has input's dtype.
{RULES}
The result is exact. NaN counts as the maximum; infinities count as numbers.""",
    dims=DIMS,
    forms=row_forms(),
    reference=max,
    keywords=(DIM, KEEPDIM),
    outputs=(Output("values"), Output("indices", dtype="int64", index="first")),
    regimes=EXTREMES,
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Load lanes past the end as −inf, not 0: all values of a row may be negative.",
        "Of equal maxima the first counts, also across blocks.",
        "tl.max ignores NaN.",
        LANES,
        STRIDES,
    ),
)
