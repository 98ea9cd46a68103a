"""Layer normalisation without affine parameters over the last dim of a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, FORMS, LAYOUTS, OUTPUT, PUBLISHED, ROWWISE, TO_FLOAT32, X


def layer_norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5)


def norm_scale(x):
    return scale.layer_norm(x, 1e-5)


TASK = Task(
    suite="seed",
    name="layer_norm",
    signature="layer_norm(x)",
    contract=f"""Layer normalisation of x over its last dimension, without weight and bias: (x − mean) / sqrt(var +
1e-5), var biased (Σ(x − mean)²/H).
{X} {COMMON}
Two passes, or an equally stable method, are demanded: rows whose mean is thousands of times their deviation are judged,
and E[x²] − E[x]² loses them. Rows whose squares overflow float32 are not judged. A row with a non-finite element is NaN
throughout.""",
    dims=DIMS,
    forms=FORMS,
    reference=layer_norm,
    outputs=OUTPUT,
    scale=norm_scale,
    in_range=scale.squares_fit,
    regimes=(*ROWWISE, "offset", "moderate_large", "overflow_f16", "half_sum", "ties"),
    layouts=LAYOUTS,
    hazards=(
        "Lanes past the end of a row add (0 − mean)² to the variance unless masked after the subtraction.",
        "Divide by H, not by the block size.",
        "E[x²] − E[x]² cancels where the mean is much larger than the deviation.",
        TO_FLOAT32,
    ),
    reduces="H",
    published=Published(dims={**PUBLISHED, "H": (2, 3, 256, 1025)}, atol={"float32": 1e-4, "float16": 5e-2}),
)
