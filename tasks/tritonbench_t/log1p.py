"""Natural logarithm of 1 + input, elementwise."""

import torch

from ._common import normwise
from ._elementwise import unary


def terms(input):
    """log(1 + x) is right beside results of size 1, not where all are small: that accuracy is what log1p is for."""
    return normwise(torch.log1p(input))


TASK = unary(
    "log1p",
    torch.log1p,
    """Natural logarithm of 1 + input, elementwise, more accurate than log(1 + input) for small inputs: the error may be a
few float32 roundings of the largest result of the call, so where all inputs are small relative accuracy counts. −1 gives
−inf; smaller numbers and NaN give NaN.""",
    positive=True,
    scale=terms,
    hazards=("log(1 + x) loses the digits of a small x.",),
)
