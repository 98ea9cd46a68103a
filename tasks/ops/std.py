"""Standard deviation over the last dim."""

import torch

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, LAYOUTS, OUTPUT, ROW, ROWWISE, RULES, SQUARES, TO_FLOAT32, X, row_forms


def std(x, correction=1):
    squares = (x - x.mean(-1, keepdim=True)).square().sum(-1)
    return torch.sqrt(squares / max(x.shape[-1] - correction, 0))


def eager(x, correction=1):
    return x.std(-1, correction=correction)


def fits(x, correction=1):
    spread = std(x, 0)
    return scale.squares_fit(x, keepdim=False) & ((spread == 0) | ~(spread < 1e-18))


TASK = Task(
    suite="ops",
    name="std",
    signature="std(x, correction=1)",
    contract=f"""Standard deviation of x over its last dimension: sqrt(Σ(x − mean)² / (N − correction)).
{X} {ROW} x's dtype. correction is an integer ≥ 0.
{RULES}
Two passes, or an equally stable method, are demanded: rows whose mean is thousands of times their deviation are judged,
and E[x²] − E[x]² loses them. As PyTorch where N ≤ correction: the divisor is max(N − correction, 0), so the result is
NaN (0/0) or inf. A row with a non-finite element gives NaN. {SQUARES} Nor are results below 1e-18,
whose squares underflow.""",
    dims=DIMS,
    forms=row_forms(),
    reference=std,
    outputs=OUTPUT,
    keywords=(Keyword("correction", 1, (0, 2)),),
    eager=eager,
    scale=scale.deviation,
    in_range=fits,
    regimes=(*ROWWISE, "offset", "overflow_f16", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "E[x²] − E[x]² cancels where the mean is much larger than the deviation.",
        "Lanes past the end of a row add (0 − mean)² unless masked after the subtraction.",
        "Divide by N − correction, which is an argument; N = 1 gives NaN by default.",
        TO_FLOAT32,
    ),
)
