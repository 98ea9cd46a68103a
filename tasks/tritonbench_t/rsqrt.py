"""Reciprocal of the square root, elementwise."""

import torch

from ._common import normal
from ._elementwise import unary


def judged(input):
    """−0 too is left out: 1/√−0 is −inf or inf by the order of the two steps."""
    return normal(input) & ~((input == 0) & torch.signbit(input))


TASK = unary(
    "rsqrt",
    torch.rsqrt,
    """Reciprocal of the square root of input, elementwise: 1/√x. 0 gives inf, inf gives 0, negative numbers and NaN give
NaN. −0 and positive inputs below the smallest normal float32 are not judged.""",
    positive=True,
    in_range=judged,
)
