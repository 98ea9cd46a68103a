"""Error function, elementwise."""

import torch

from ._common import normwise
from ._elementwise import unary


def terms(input):
    """Textbook polynomials err absolutely by 1.5e-7: right beside results of size 1, not where all results are small
    (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26)."""
    return normwise(torch.erf(input))


TASK = unary(
    "erf",
    torch.erf,
    """Error function of input, elementwise: 2/√π ∫₀ˣ exp(−t²) dt. The error may be a few float32 roundings of the largest
result of the call: where all inputs are small, relative accuracy counts. ±inf gives ±1, NaN gives NaN.""",
    scale=terms,
    hazards=("1 − polynomial·exp(−x²) loses all relative accuracy near 0.",),
)
