"""SELU, elementwise, in place if asked."""

import torch
import torch.nn.functional as F

from oracle import scale

from ._common import TO_FLOAT32
from ._elementwise import activation


def terms(input):
    """exp(x) − 1 for negative x subtracts numbers of size 1."""
    x = scale.finite(input)
    return torch.where(x > 0, 1.06 * x, 1.76 * (1 + (1 - x) * torch.exp(x.clamp(max=0))))


TASK = activation(
    "selu",
    F.selu,
    """SELU of input, elementwise: scale·(max(0, x) + min(0, alpha·(exp(x) − 1))) with alpha =
1.6732632423543772848170429916717 and scale = 1.0507009873554804934193349852946. For negative inputs the error may be a few
float32 roundings of 1, also near 0. NaN stays NaN.""",
    signature="selu(input, inplace=False)",
    scale=terms,
    hazards=("exp of a large positive input overflows in the branch that is not taken.", TO_FLOAT32),
)
