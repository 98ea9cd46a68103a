"""y += alpha·x in place, and the 2-norm of the new y."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import DIMS, FOLLOWS, LANES, LAYOUTS, ROWWISE, RULES


def scaled_add_norm(y, x, alpha):
    y.add_(x, alpha=alpha)
    return torch.linalg.vector_norm(y)


def addends(y, x, alpha):
    return scale.finite(y).abs() + abs(alpha) * scale.finite(x).abs()


def terms(y, x, alpha):
    size = addends(y, x, alpha)
    return scale.relative(torch.linalg.vector_norm(y + alpha * x), len(y)) + torch.linalg.vector_norm(size), size


def rounded(y, x, alpha):
    size = addends(y, x, alpha)
    return torch.linalg.vector_norm(size), size


def fits(y, x, alpha):
    """The norm where squares neither overflow nor underflow; y everywhere."""
    total = y + alpha * x
    peak = scale.finite(total).abs().amax()
    return scale.squares_fit(total, keepdim=False) & ((peak == 0) | (peak >= 1e-17)), torch.ones_like(
        y, dtype=torch.bool
    )


TASK = Task(
    suite="tritonbench_t",
    name="scaled_add_norm",
    signature="scaled_add_norm(y, x, alpha)",
    contract=f"""y becomes y + alpha·x in place, and the 2-norm of the new y is returned, 0-d. y and x are (N,), N any size
≥ 1; alpha is a number. Both have one dtype, float32, float16 or bfloat16, and so has the result.
{RULES}
y changes as said. Each step may be rounded to the dtype, y before the norm. {FOLLOWS} Norms whose squares overflow or
underflow float32 are not judged.""",
    dims={"N": DIMS["N"]},
    forms=(Form("vectors", (Tensor("y", ("N",)), Tensor("x", ("N",)))),),
    reference=scaled_add_norm,
    keywords=(Keyword("alpha", 1.5, (1.0, 0.0, -2.0, 2), required=True, positional=True),),
    scale=terms,
    storage=rounded,
    in_range=fits,
    mutates=("y",),
    regimes=(*ROWWISE, "half_sum", "correlated"),
    layouts=(*LAYOUTS, "strided:x", "strided:y"),
    reduces="N",
    hazards=(
        "The norm is of the new y, over all blocks: join sums by atomics into a zeroed cell, or in a second kernel.",
        "The root is taken once, after all squares are summed.",
        LANES,
        "y may be strided: write through its stride.",
    ),
)
