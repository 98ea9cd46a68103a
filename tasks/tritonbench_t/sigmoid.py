"""Sigmoid, elementwise."""

import torch

from oracle import scale

from ._elementwise import unary

TASK = unary(
    "sigmoid",
    torch.sigmoid,
    """Sigmoid of input, elementwise: 1 / (1 + exp(−x)). Every finite magnitude is judged. ±inf gives 1 and 0, NaN gives
NaN.""",
    scale=scale.sigmoid,
    hazards=("exp(x)/(1 + exp(x)) is inf/inf from x = 89 on.",),
)
