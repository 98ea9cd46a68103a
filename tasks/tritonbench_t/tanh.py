"""Hyperbolic tangent, elementwise."""

import torch

from ._elementwise import unary


def near_one(input):
    """2·sigmoid(2x) − 1 subtracts numbers of size 1."""
    return 1 + torch.tanh(input).abs()


TASK = unary(
    "tanh",
    torch.tanh,
    """Hyperbolic tangent of input, elementwise. Every finite magnitude is judged: the result tends to ±1. The error may be a
few float32 roundings of 1, also near 0. ±inf gives ±1, NaN gives NaN.""",
    scale=near_one,
    hazards=("(e^x − e^−x)/(e^x + e^−x) is inf/inf from x = 89 on; 2·sigmoid(2x) − 1 is safe.",),
)
