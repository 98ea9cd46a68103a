"""Standard deviation of GELU over all or given dims."""

import torch
import torch.nn.functional as F

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
    TO_FLOAT32,
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


def rms(x, correction):
    return (x.square().sum(-1) / max(x.shape[-1] - correction, 1)).sqrt()


@written
def gelu_std(input, dim=None, keepdim=False, correction=1, approximate="none"):
    return back(deviation(F.gelu(rows(input, dim), approximate=approximate), correction), input, dim, keepdim)


@beside
def terms(input, dim=None, keepdim=False, correction=1, approximate="none"):
    """Of the deviation, and the errors of GELU's values as they move it."""
    x = rows(input, dim)
    errors = scale.gelu_tanh(x) if approximate == "tanh" else scale.gelu_erf(x)
    size = scale.deviation(F.gelu(x, approximate=approximate), correction) + rms(errors, correction)
    return back(size, input, dim, keepdim)


@beside
def rounded(input, dim=None, keepdim=False, correction=1, approximate="none"):
    values = F.gelu(rows(input, dim), approximate=approximate)
    return back(rms(scale.finite(values), correction), input, dim, keepdim)


@beside
def fits(input, dim=None, keepdim=False, correction=1, approximate="none"):
    values = F.gelu(rows(input, dim), approximate=approximate)
    spread = deviation(values, 0)
    return back(scale.squares_fit(values, keepdim=False) & ((spread == 0) | ~(spread < 1e-18)), input, dim, keepdim)


TASK = Task(
    suite="tritonbench_t",
    name="gelu_std",
    signature="gelu_std(input, dim=None, keepdim=False, correction=1, approximate='none', out=None)",
    contract=f"""Standard deviation of GELU(input) over dim: an int, a tuple of ints, or None for all dimensions (a 0-d
result): sqrt(Σ(g − mean)² / max(0, N − correction)). approximate='none': x·Φ(x); 'tanh': 0.5·x·(1 + tanh(√(2/π)·(x +
0.044715·x³))). keepdim=True keeps reduced dimensions with size 1, else they are dropped.
{ROWS} The result has input's dtype. {OUT}
{RULES}
GELU's values may be rounded to the input dtype. Two passes, or an equally stable method, are demanded. No more elements
than correction: NaN (0/0) or inf. A NaN or −inf gives NaN, and so does inf. Rows whose squares overflow float32, and
results below 1e-18, are not judged.""",
    dims=several(WHOLE_DIMS),
    forms=(*WHOLE_FORMS, Form("one_element", (Tensor("input", (1, 1)),), tier="values")),
    reference=gelu_std,
    keywords=(DIM_OR_ALL, KEEPDIM, Keyword("correction", 1, (0, 2)), Keyword("approximate", "none", ("tanh",))),
    scale=terms,
    storage=rounded,
    in_range=fits,
    mutates=("out",),
    regimes=(*ROWWISE, "offset", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Lanes past the end add (0 − mean)² unless masked after the subtraction.",
        "The mean of all elements must be known before the squares are summed: not block by block.",
        LANES,
        TO_FLOAT32,
        STRIDES,
    ),
)
