"""Mean over the last dim."""

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, OVERFLOW, ROW, ROWWISE, RULES, X, row_forms


def mean(x):
    return x.mean(-1)


def terms(x):
    return scale.row_sum(x) / x.shape[-1]


TASK = Task(
    suite="ops",
    name="mean",
    signature="mean(x)",
    contract=f"""Mean of x over its last dimension.
{X} {ROW} x's dtype.
{RULES}
Non-finite inputs follow torch.mean: NaN, or infinities of both signs, give NaN. {OVERFLOW}""",
    dims=DIMS,
    forms=row_forms(),
    reference=mean,
    outputs=OUTPUT,
    scale=terms,
    in_range=scale.sums_fit,
    regimes=(*ROWWISE, "half_sum", "overflow_f16", "offset"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Accumulate in float32: float16 sums of long rows stop growing, or overflow where the mean does not.",
        "Divide by N, not by the block size.",
        LANES,
    ),
)
