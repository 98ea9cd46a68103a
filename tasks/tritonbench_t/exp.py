"""Exponential, elementwise."""

import torch

from oracle import scale

from ._elementwise import unary


def terms(input):
    return scale.finite(scale.sensitivity(torch.exp, input))


TASK = unary(
    "exp",
    torch.exp,
    """Exponential of input, elementwise. Results beyond the dtype's range are inf or 0. −inf gives 0, NaN gives NaN.""",
    scale=terms,
)
