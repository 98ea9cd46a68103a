"""Square root, elementwise."""

import torch

from ._common import normal
from ._elementwise import unary

TASK = unary(
    "sqrt",
    torch.sqrt,
    """Square root of input, elementwise. Negative numbers and NaN give NaN. Positive inputs below the smallest normal
float32 are not judged.""",
    positive=True,
    in_range=normal,
)
