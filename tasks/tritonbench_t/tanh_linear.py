"""Hyperbolic tangent of a linear layer."""

import torch
import torch.nn.functional as F

from oracle.schema import Task

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


def tanh_linear(input, weight, bias=None):
    return torch.tanh(F.linear(input, weight, bias))


def terms(input, weight, bias=None):
    """2·sigmoid(2x) − 1 subtracts numbers of size 1."""
    value, size, _ = linear(input, weight, bias)
    return 1 + torch.tanh(value).abs() + moved(torch.tanh, value, size)


def rounded(input, weight, bias=None):
    value, _, size = linear(input, weight, bias)
    return moved(torch.tanh, value, size)


TASK = Task(
    suite="tritonbench_t",
    name="tanh_linear",
    signature="tanh_linear(input, weight, bias=None)",
    contract=f"""Hyperbolic tangent of the linear layer input @ weight.T + bias, elementwise.
{LINEAR}
{RULES}
Layers of any finite magnitude are judged: the result tends to ±1. The error may be a few float32 roundings of 1, also
near 0. {FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=linear_forms(),
    reference=tanh_linear,
    scale=terms,
    storage=rounded,
    in_range=linear_fits,
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:weight", "strided:bias"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "(e^x − e^−x)/(e^x + e^−x) is inf/inf from x = 89 on, which a layer of a few dozen inputs reaches.",
        "weight is (N, K): its transpose is multiplied.",
        "bias is added once, after the loop over K, and may be None.",
        "input may have 1 or 3 dimensions: all leading ones count as rows.",
    ),
)
