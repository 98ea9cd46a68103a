"""Cosine, elementwise."""

import torch

from oracle import scale

from ._elementwise import unary


def terms(input):
    """One rounding of the argument counts: far from 0 every result is right."""
    return 1 + scale.finite(scale.sensitivity(torch.cos, input))


TASK = unary(
    "cos",
    torch.cos,
    """Cosine of input, elementwise, in radians. An error of a few float32 roundings of the argument, or of 1, is right.
±inf and NaN give NaN.""",
    scale=terms,
)
