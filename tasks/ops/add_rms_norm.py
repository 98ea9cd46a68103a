"""Residual sum and its RMS normalisation over the last dim."""

import torch

from oracle import scale
from oracle.schema import Keyword, Output, Task

from ._common import DIMS, LANES, LAYOUTS, ROWWISE, RULES, SQUARES, X, row_forms


def add_rms_norm(x, residual, weight, eps=1e-6):
    s = x + residual
    return s * torch.rsqrt((s * s).mean(-1, keepdim=True) + eps) * weight, s


def terms(x, residual, weight, eps=1e-6):
    y, s = add_rms_norm(x, residual, weight, eps)
    return scale.relative(y, x.shape[-1]), scale.finite(s).abs()


def fits(x, residual, weight, eps=1e-6):
    return scale.squares_fit(x + residual), torch.ones_like(x, dtype=torch.bool)


TASK = Task(
    suite="ops",
    name="add_rms_norm",
    signature="add_rms_norm(x, residual, weight, eps=1e-6)",
    contract=f"""Returns the tuple (y, s): s = x + residual, and y = s / sqrt(mean(s²) + eps) · weight over the last
dimension.
{X} residual has x's shape and dtype, weight has shape (N,), N = x.shape[-1], and x's dtype. Both results have x's shape
and dtype.
{RULES}
y may be computed from s in float32 or as rounded to the input dtype; the normalised value may be rounded to it before
the weight is applied. {SQUARES} Non-finite inputs follow the formula in float32: where s has a NaN the row of y is NaN
throughout; where it has an infinity that element of y is NaN and finite ones are 0.""",
    dims=DIMS,
    forms=row_forms("weight", beside=("residual",)),
    reference=add_rms_norm,
    outputs=(Output("y", contiguous=True), Output("s", contiguous=True)),
    keywords=(Keyword("eps", 1e-6, (1e-3, 1.0)),),
    scale=terms,
    in_range=fits,
    regimes=("correlated", *ROWWISE, "overflow_f16", "moderate_large", "half_sum"),
    layouts=(*LAYOUTS, "sliced:x", "sliced:residual", "strided:weight"),
    reduces="N",
    hazards=(
        "mean(s²) is not mean(x²) + mean(residual²): the cross term counts.",
        "Both results are returned, y first, each of x's dtype; neither input changes.",
        "An all-zero row is 0, not NaN: eps stands inside the root.",
        LANES,
    ),
)
