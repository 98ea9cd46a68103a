"""Running sum along the last dim."""

import torch

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, LAYOUTS, OUTPUT, OVERFLOW, ROWWISE, RULES, SAME, X, row_forms


def cumsum(x):
    return x.cumsum(-1)


def running(x):
    """Σ|x| up to each element, times the growth of a sum of that length, in whatever order."""
    count = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    return count.sqrt() * scale.finite(x).abs().cumsum(-1)


def fits(x):
    return scale.finite(x).abs().cumsum(-1) <= scale.LARGEST


TASK = Task(
    suite="ops",
    name="cumsum",
    signature="cumsum(x)",
    contract=f"""Running sum of x along its last dimension: out[…, i] = x[…, 0] + … + x[…, i].
{X} {SAME}
{RULES}
Keep the running sum in float32: it may not be rounded to the input dtype between blocks. Non-finite inputs follow
torch.cumsum: from the first NaN on, or once infinities of both signs were met, the row is NaN. {OVERFLOW}""",
    dims=DIMS,
    forms=row_forms(),
    reference=cumsum,
    outputs=OUTPUT,
    scale=running,
    in_range=fits,
    regimes=(*ROWWISE, "half_sum", "overflow_f16", "offset"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "A row longer than one block needs a carry from block to block.",
        "Keep the carry in float32, not in the output dtype.",
        "The last block is partial and must be written.",
    ),
)
