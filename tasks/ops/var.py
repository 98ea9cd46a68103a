"""Variance over the last dim."""

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, ROW, ROWWISE, RULES, SQUARES, X, row_forms


def var(x, correction=1):
    squares = (x - x.mean(-1, keepdim=True)).square().sum(-1)
    return squares / max(x.shape[-1] - correction, 0)


def eager(x, correction=1):
    return x.var(-1, correction=correction)


def fits(x, correction=1):
    return scale.squares_fit(x, keepdim=False)


TASK = Task(
    suite="ops",
    name="var",
    signature="var(x, correction=1)",
    contract=f"""Variance of x over its last dimension: Σ(x − mean)² / (N − correction).
{X} {ROW} x's dtype. correction is an integer ≥ 0.
{RULES}
Two passes, or an equally stable method, are demanded: rows whose mean is thousands of times their deviation are judged,
and E[x²] − E[x]² loses them. As PyTorch where N ≤ correction: the divisor is max(N − correction, 0), so the result is
NaN (0/0) or inf. A row with a non-finite element gives NaN. {SQUARES}""",
    dims=DIMS,
    forms=row_forms(),
    reference=var,
    outputs=OUTPUT,
    keywords=(Keyword("correction", 1, (0, 2)),),
    eager=eager,
    scale=scale.variance,
    in_range=fits,
    regimes=(*ROWWISE, "offset", "overflow_f16", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "E[x²] − E[x]² cancels where the mean is much larger than the deviation.",
        "Lanes past the end of a row add (0 − mean)² unless masked after the subtraction.",
        "Divide by N − correction, which is an argument; N = 1 gives NaN by default.",
        LANES,
    ),
)
