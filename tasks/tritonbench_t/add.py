"""Sum input + alpha·other."""

import torch

from oracle import scale
from oracle.schema import Keyword

from ._elementwise import binary


def add(input, other, *, alpha=1):
    return torch.add(input, other, alpha=alpha)


def terms(input, other, *, alpha=1):
    return scale.finite(input).abs() + scale.finite(torch.as_tensor(alpha * other)).abs()


TASK = binary(
    "add",
    add,
    """input + alpha·other, elementwise; alpha is a number, and alpha·other may be rounded to the input dtype. Non-finite
inputs follow PyTorch: inf − inf is NaN.""",
    signature="add(input, other, *, alpha=1, out=None)",
    keywords=(Keyword("alpha", 1, (2, 0.5, -1.5)),),
    scale=terms,
    storage=terms,
)
