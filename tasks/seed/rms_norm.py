"""RMS normalisation without weight over the last dim of a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, FORMS, LAYOUTS, OUTPUT, PUBLISHED, ROWWISE, TO_FLOAT32, X


def rms_norm(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def norm_scale(x):
    return scale.relative(rms_norm(x), x.shape[-1])


def eager(x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5)


TASK = Task(
    suite="seed",
    name="rms_norm",
    signature="rms_norm(x)",
    contract=f"""RMS normalisation of x over its last dimension, without weight: x · rsqrt(mean(x²) + 1e-5).
{X} {COMMON}
Rows whose squares overflow float32 are not judged. Non-finite inputs follow the formula in float32: a row with a NaN is
NaN throughout; in a row with an infinity that element is NaN and finite ones are 0.""",
    dims=DIMS,
    forms=FORMS,
    reference=rms_norm,
    eager=eager,
    outputs=OUTPUT,
    scale=norm_scale,
    in_range=scale.squares_fit,
    regimes=(*ROWWISE, "overflow_f16", "moderate_large", "offset", "half_sum"),
    layouts=LAYOUTS,
    hazards=(
        "mean(x²) divides by H, not by the block size; then the square root.",
        "Squares of float16 values above 255 overflow float16: square in float32.",
        "An all-zero row is 0, not NaN: eps stands inside the root.",
        TO_FLOAT32,
    ),
    reduces="H",
    published=Published(dims={**PUBLISHED, "H": (2, 3, 256, 1025)}, atol={"float32": 1e-4, "float16": 5e-2}),
)
