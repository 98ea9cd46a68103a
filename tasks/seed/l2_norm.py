"""L2 normalisation over the last dim of a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, FORMS, LAYOUTS, OUTPUT, PUBLISHED, ROWWISE, TO_FLOAT32, X


def l2_norm(x):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-12)


def norm_scale(x):
    return scale.relative(l2_norm(x), x.shape[-1])


TASK = Task(
    suite="seed",
    name="l2_norm",
    signature="l2_norm(x)",
    contract=f"""L2 normalisation of x over its last dimension: x / sqrt(Σx² + 1e-12).
{X} {COMMON}
Rows whose squares overflow float32 are not judged. Non-finite inputs follow the formula in float32: a row with a NaN is
NaN throughout; in a row with an infinity that element is NaN and finite ones are 0.""",
    dims=DIMS,
    forms=FORMS,
    reference=l2_norm,
    outputs=OUTPUT,
    scale=norm_scale,
    in_range=scale.squares_fit,
    regimes=(*ROWWISE, "overflow_f16", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    hazards=(
        "The root of the sum of squares, not the sum itself; no division by H.",
        "Squares of float16 values above 255 overflow float16: square in float32.",
        "An all-zero row is 0, not NaN: 1e-12 stands inside the root.",
        TO_FLOAT32,
    ),
    reduces="H",
    published=Published(dims={**PUBLISHED, "H": (2, 3, 256, 1025)}, atol={"float32": 1e-4, "float16": 5e-2}),
)
