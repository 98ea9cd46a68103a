"""ELU with alpha 1, elementwise on a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, TO_FLOAT32, X


def elu(x):
    return torch.nn.functional.elu(x)


def terms(x):
    """exp(x) − 1 subtracts numbers of size 1 at most; the rounding of exp's argument counts |x|·exp(x)."""
    return torch.where(x > 0, scale.finite(x), 2 + scale.finite(x * torch.exp(x)).abs())


TASK = Task(
    suite="seed",
    name="elu",
    signature="elu(x)",
    contract=f"""ELU of x with α = 1, elementwise: x where x > 0, else exp(x) − 1.
{X} {COMMON}
Every finite magnitude is judged: exp of a large positive x must not spoil the result. The error may be a few float32
roundings of 1 for x < 0, also near 0 (so that exp(x) − 1 is right). Non-finite inputs follow torch.nn.functional.elu:
+inf stays, −inf gives −1, NaN stays NaN.""",
    dims=DIMS,
    forms=FORMS,
    reference=elu,
    outputs=OUTPUT,
    scale=terms,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "A sum or product of both branches gives inf or NaN where exp(x) overflows: choose with tl.where.",
        "tl.math.expm1 does not exist; exp(x) − 1 is accurate enough here.",
        TO_FLOAT32,
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-4, "float16": 5e-2}),
)
