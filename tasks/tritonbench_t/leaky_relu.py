"""Leaky ReLU, elementwise, in place if asked."""

import torch

from oracle.schema import Keyword

from ._elementwise import activation


def leaky_relu(input, negative_slope=0.01):
    return torch.where(input > 0, input, input * negative_slope)


TASK = activation(
    "leaky_relu",
    leaky_relu,
    """Leaky ReLU of input, elementwise: max(0, x) + negative_slope·min(0, x). NaN stays NaN.""",
    signature="leaky_relu(input, negative_slope=0.01, inplace=False)",
    keywords=(Keyword("negative_slope", 0.01, (0.2, 1.5, 0.0, -0.5)),),
    hazards=("max(x, slope·x) is right only for slopes in [0, 1], and loses NaN.",),
)
