"""Standard deviation over all or given dims."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    DIM_OR_ALL,
    KEEPDIM,
    LANES,
    LAYOUTS,
    OUT,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    WHOLE_DIMS,
    WHOLE_FORMS,
    back,
    beside,
    rows,
    several,
    written,
)


def deviation(x, correction):
    """Over the last dim, as PyTorch where there are not more elements than `correction`."""
    squares = (x - x.mean(-1, keepdim=True)).square().sum(-1)
    return torch.sqrt(squares / max(x.shape[-1] - correction, 0))


@written
def std(input, dim=None, *, correction=1, keepdim=False):
    return back(deviation(rows(input, dim), correction), input, dim, keepdim)


@beside
def terms(input, dim=None, *, correction=1, keepdim=False):
    return back(scale.deviation(rows(input, dim), correction), input, dim, keepdim)


@beside
def fits(input, dim=None, *, correction=1, keepdim=False):
    x = rows(input, dim)
    spread = deviation(x, 0)
    return back(scale.squares_fit(x, keepdim=False) & ((spread == 0) | ~(spread < 1e-18)), input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="std",
    signature="std(input, dim=None, *, correction=1, keepdim=False, out=None)",
    contract=f"""Standard deviation of input over dim: an int, a tuple of ints, or None for all dimensions (a 0-d result):
sqrt(Σ(x − mean)² / max(0, N − correction)). keepdim=True keeps reduced dimensions with size 1, else they are dropped.
{ROWS} The result has input's dtype. {OUT}
{RULES}
Two passes, or an equally stable method, are demanded: E[x²] − E[x]² loses rows with a large mean. No more elements than
correction: NaN (0/0) or inf. A non-finite element gives NaN. Rows whose squares overflow float32, and results below
1e-18, are not judged.""",
    dims=several(WHOLE_DIMS),
    forms=(*WHOLE_FORMS, Form("one_element", (Tensor("input", (1, 1)),), tier="values")),
    reference=std,
    keywords=(DIM_OR_ALL, Keyword("correction", 1, (0, 2)), KEEPDIM),
    scale=terms,
    in_range=fits,
    mutates=("out",),
    regimes=(*ROWWISE, "offset", "overflow_f16", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Lanes past the end add (0 − mean)² unless masked after the subtraction.",
        "The mean of all elements must be known before the squares are summed: not block by block.",
        "Divide by N − correction, which is an argument.",
        LANES,
        STRIDES,
    ),
)
