"""GELU, tanh form, elementwise on a rank-3 tensor."""

import torch

from oracle import scale
from oracle.schema import Published, Task

from ._common import COMMON, DIMS, ELEMENTWISE, FORMS, LAYOUTS, MASK, OUTPUT, PUBLISHED, X


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


TASK = Task(
    suite="seed",
    name="gelu",
    signature="gelu(x)",
    contract=f"""GELU of x in its tanh form, elementwise: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
{X} {COMMON}
Every finite magnitude is judged: tanh must not overflow to NaN, and the result tends to x and to 0. Non-finite inputs
follow torch.nn.functional.gelu(x, approximate="tanh"): +inf gives +inf, −inf and NaN give NaN.""",
    dims=DIMS,
    forms=FORMS,
    reference=gelu,
    outputs=OUTPUT,
    scale=scale.gelu_tanh,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "The factor 0.5 and both constants belong to the formula; the erf form differs by up to 5e-4.",
        "tanh as (e^2g − 1)/(e^2g + 1) is inf/inf from g = 45 on; 2·sigmoid(2g) − 1 is safe, and tl.tanh does not exist.",
        MASK,
    ),
    published=Published(dims=PUBLISHED, atol={"float32": 1e-4, "float16": 5e-2}),
)
