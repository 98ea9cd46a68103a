"""Softmax over the last dim of a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, FORMS, LAYOUTS, OUTPUT, PUBLISHED, ROWWISE, TO_FLOAT32, X


def softmax(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    suite="seed",
    name="softmax",
    signature="softmax(x)",
    contract=f"""Softmax of x over its last dimension: exp(x − max) / Σ exp(x − max).
{X} {COMMON}
Subtract the row's maximum before the exponential (and before any scaling by log2 e): rows of any finite magnitude are
judged. Non-finite inputs follow torch.softmax: −inf gets 0; a row with a NaN or +inf, or of nothing but −inf, is NaN
throughout.""",
    dims=DIMS,
    forms=FORMS,
    reference=softmax,
    outputs=OUTPUT,
    scale=scale.softmax,
    regimes=(
        *ROWWISE,
        "lowest",
        "moderate_large",
        "spread",
        "infinite_rows",
        "offset",
        "sorted",
        "ties",
        "signed_zeros",
        "half_sum",
    ),
    layouts=LAYOUTS,
    hazards=(
        "Lanes past the end of a row must not take part: load them as −inf, not 0.",
        "H is not always a power of two or below 1024: the last block is partial and must be written.",
        "Without subtracting the row's maximum exp overflows from 89 in float32.",
        TO_FLOAT32,
    ),
    reduces="H",
    published=Published(dims=PUBLISHED, atol={"float32": 1e-5, "float16": 2e-2}),
)
