"""Sum over the last dim."""

from oracle import scale
from oracle.schema import Dim, Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, OVERFLOW, ROW, ROWWISE, RULES, WIDTHS, row_forms


def sum(x):
    return x.sum(-1)


TASK = Task(
    suite="ops",
    name="sum",
    signature="sum(x)",
    contract=f"""Sum of x over its last dimension. A last dimension of size 0 gives zeros.
x has 1 to 4 dimensions of any size, 0 included, and dtype float32, float16 or bfloat16. {ROW} x's dtype.
{RULES}
Non-finite inputs follow torch.sum: NaN, or infinities of both signs, give NaN. {OVERFLOW}""",
    dims={**DIMS, "N": Dim(WIDTHS, base=256, naive=1024, empty=True)},
    forms=row_forms(),
    reference=sum,
    outputs=OUTPUT,
    scale=scale.row_sum,
    in_range=scale.sums_fit,
    regimes=(*ROWWISE, "half_sum", "overflow_f16", "offset"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "Accumulate in float32: float16 sums of long rows stop growing or overflow on the way.",
        LANES,
        "A row of no elements sums to 0; the grid must not be empty for it.",
    ),
)
