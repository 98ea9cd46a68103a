"""ReLU, elementwise, in place if asked."""

import torch

from ._elementwise import activation

TASK = activation(
    "relu",
    torch.relu,
    "ReLU of input, elementwise: max(0, x), exact. NaN stays NaN.",
    signature="relu(input, inplace=False)",
    hazards=("tl.maximum(x, 0) gives 0 for NaN: use tl.where(x <= 0, 0, x) or propagate NaN.",),
)
