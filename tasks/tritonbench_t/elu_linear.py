"""ELU of a linear layer."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import (
    DEPTH,
    FOLLOWS,
    LAYOUTS,
    LINEAR,
    OVERFLOW,
    PRODUCT,
    PRODUCTS,
    RULES,
    linear,
    linear_fits,
    linear_forms,
    moved,
)


def elu_linear(input, weight, bias=None, alpha=1.0, inplace=False):
    return F.elu(F.linear(input, weight, bias), alpha)


def terms(input, weight, bias=None, alpha=1.0, inplace=False):
    """exp(x) − 1 for negative x subtracts numbers of size 1."""
    value, size, _ = linear(input, weight, bias)
    activated = scale.finite(F.elu(value, alpha)).abs() + torch.where(value > 0, 0.0, 2 * abs(alpha))
    return activated + moved(lambda z: F.elu(z, alpha), value, size)


def rounded(input, weight, bias=None, alpha=1.0, inplace=False):
    value, _, size = linear(input, weight, bias)
    return moved(lambda z: F.elu(z, alpha), value, size)


TASK = Task(
    suite="tritonbench_t",
    name="elu_linear",
    signature="elu_linear(input, weight, bias=None, alpha=1.0, inplace=False)",
    contract=f"""ELU of the linear layer x = input @ weight.T + bias, elementwise: x where x > 0, else alpha·(exp(x) − 1).
{LINEAR} inplace may change the layer's result in place, which the caller does not see.
{RULES}
For x ≤ 0 the error may be a few float32 roundings of alpha. {FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=linear_forms(vector="keywords"),
    reference=elu_linear,
    keywords=(Keyword("alpha", 1.0, (0.5, 2.0)), Keyword("inplace", False, (True,))),
    scale=terms,
    storage=rounded,
    in_range=linear_fits,
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:weight", "strided:bias"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "weight is (N, K): its transpose is multiplied.",
        "bias is added once, after the loop over K, and may be None.",
        "input may have 1 or 3 dimensions: all leading ones count as rows.",
    ),
)
