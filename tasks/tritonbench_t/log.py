"""Natural logarithm, elementwise."""

import torch

from oracle import scale

from ._common import normal
from ._elementwise import unary


def terms(input):
    """1 + |log x|: logarithms by a hardware instruction err absolutely near x = 1."""
    return 1 + scale.finite(torch.log(input)).abs()


TASK = unary(
    "log",
    torch.log,
    """Natural logarithm of input, elementwise. 0 gives −inf, negative numbers and NaN give NaN. Positive inputs below the
smallest normal float32 are not judged.""",
    positive=True,
    scale=terms,
    in_range=normal,
)
