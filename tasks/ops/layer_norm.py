"""Layer normalisation over the last dim with weight and bias."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, ROWWISE, RULES, SAME, SQUARES, X, row_forms


def layer_norm(x, weight, bias, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def terms(x, weight, bias, eps=1e-5):
    return scale.layer_norm(x, eps) * scale.finite(weight).abs() + scale.finite(bias).abs()


def rounded(x, weight, bias, eps=1e-5):
    return scale.finite(F.layer_norm(x, x.shape[-1:], eps=eps) * weight).abs() + scale.finite(bias).abs()


TASK = Task(
    suite="ops",
    name="layer_norm",
    signature="layer_norm(x, weight, bias, eps=1e-5)",
    contract=f"""Layer normalisation of x over its last dimension: (x − mean) / sqrt(var + eps) · weight + bias, var
biased (Σ(x − mean)²/N).
{X} weight and bias have shape (N,), N = x.shape[-1], and x's dtype. {SAME}
{RULES}
Two passes, or an equally stable method, are demanded: rows whose mean is thousands of times their deviation are judged,
and E[x²] − E[x]² loses them. {SQUARES} Non-finite inputs follow PyTorch: a row of x with a non-finite element is NaN
throughout. The normalised value may be rounded to the input dtype before weight and bias are applied.""",
    dims=DIMS,
    forms=row_forms("weight", "bias"),
    reference=layer_norm,
    outputs=OUTPUT,
    keywords=(Keyword("eps", 1e-5, (1e-3, 1.0)),),
    scale=terms,
    storage=rounded,
    in_range=lambda x, weight, bias, eps=1e-5: scale.squares_fit(x),
    regimes=(*ROWWISE, "offset", "moderate_large", "overflow_f16", "half_sum", "ties"),
    layouts=(*LAYOUTS, "strided:weight", "strided:bias"),
    reduces="N",
    hazards=(
        "Lanes past the end of a row add (0 − mean)² to the variance unless masked after the subtraction.",
        "E[x²] − E[x]² cancels where the mean is much larger than the deviation.",
        "weight and bias follow the column, and eps is an argument.",
        LANES,
    ),
)
