"""RMS normalisation over the last dim with a weight."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, ROWWISE, RULES, SAME, SQUARES, X, row_forms


def rms_norm(x, weight, eps=1e-6):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def eager(x, weight, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def terms(x, weight, eps=1e-6):
    return scale.relative(rms_norm(x, weight, eps), x.shape[-1])


TASK = Task(
    suite="ops",
    name="rms_norm",
    signature="rms_norm(x, weight, eps=1e-6)",
    contract=f"""RMS normalisation of x over its last dimension: x / sqrt(mean(x²) + eps) · weight.
{X} weight has shape (N,), N = x.shape[-1], and x's dtype. {SAME}
{RULES}
{SQUARES} Non-finite inputs follow the formula in float32: a row of x with a NaN is NaN throughout; in a row with an
infinity that element is NaN and finite ones are 0. The normalised value may be rounded to the input dtype before the
weight is applied.""",
    dims=DIMS,
    forms=row_forms("weight"),
    reference=rms_norm,
    outputs=OUTPUT,
    eager=eager,
    keywords=(Keyword("eps", 1e-6, (1e-3, 1.0)),),
    scale=terms,
    in_range=lambda x, weight, eps=1e-6: scale.squares_fit(x),
    regimes=(*ROWWISE, "overflow_f16", "moderate_large", "offset", "half_sum"),
    layouts=(*LAYOUTS, "strided:weight"),
    reduces="N",
    hazards=(
        "An all-zero row is 0, not NaN: eps stands inside the root, and is an argument.",
        "mean(x²) divides by N, not by the block size.",
        "Squares of float16 values above 255 overflow float16: square in float32.",
        LANES,
    ),
)
