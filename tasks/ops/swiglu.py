"""SwiGLU: SiLU of one tensor times another."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, TO_FLOAT32, forms


def swiglu(a, b):
    return F.silu(a) * b


def rounded(a, b):
    """silu(a) as rounded before the product; below float16's smallest normal number the rounding is absolute."""
    gate = F.silu(a).abs()
    return torch.where((gate > 0) & (gate < 2.0**-14), 2.0**-14, gate) * b.abs()


TASK = Task(
    suite="ops",
    name="swiglu",
    signature="swiglu(a, b)",
    contract=f"""silu(a)·b, elementwise, with silu(a) = a·sigmoid(a).
a and b have one shape, 1 to 4 dimensions of any size ≥ 1 (all but the last may be 0: an empty result), and one dtype,
float32, float16 or bfloat16. The result has their shape and dtype.
{RULES}
silu(a) may be rounded to the input dtype before the product. Non-finite inputs follow PyTorch: silu(−inf) is NaN.
Elements that hang on a silu(a) below 1e-36, which float32 may flush to 0, are not judged.""",
    dims=DIMS,
    forms=forms("a", "b"),
    reference=swiglu,
    outputs=OUTPUT,
    scale=lambda a, b: scale.silu(a) * scale.finite(b).abs(),
    storage=rounded,
    in_range=lambda a, b: scale.silu_fits(a, scale.finite(b)),
    regimes=ELEMENTWISE,
    layouts=(*LAYOUTS, "sliced:a", "sliced:b", "transposed:b", "strided:b"),
    hazards=(
        "a and b have strides of their own: b is often half of a fused tensor, a contiguous.",
        "silu applies to a alone.",
        TO_FLOAT32,
        MASK,
    ),
)
