"""Quotient input / other, rounded to a whole number if asked."""

import torch

from oracle.schema import Keyword

from ._elementwise import binary

NEAR = 2.0**-8  # relative distance from a whole number within which rounded quotients may differ, in any dtype


def div(input, other, *, rounding_mode=None):
    return torch.div(input, other, rounding_mode=rounding_mode)


def clear(input, other, *, rounding_mode=None):
    """Subnormal divisors may be flushed; a rounded quotient is judged where it hangs on no rounding on the way."""
    quotient = torch.div(input, other)
    divisor = torch.as_tensor(other, dtype=quotient.dtype).abs()
    fits = ((divisor == 0) | ~(divisor < 1e-37)).expand(quotient.shape)
    if rounding_mode is None:
        return fits
    return fits & ~((quotient - quotient.round()).abs() <= NEAR * quotient.abs().clamp(min=1e-3))


TASK = binary(
    "div",
    div,
    """input / other, elementwise. rounding_mode 'trunc' rounds the quotient towards zero, 'floor' down. Non-finite inputs
follow PyTorch: 1/0 is inf, 0/0 is NaN. Not judged: divisors below 1e-37, and rounded quotients within 2^-8 (relative) of
a whole number.""",
    signature="div(input, other, *, rounding_mode=None, out=None)",
    keywords=(Keyword("rounding_mode", None, ("trunc", "floor")),),
    whole=False,
    in_range=clear,
    hazards=("'floor' and 'trunc' differ for negative quotients.",),
)
