"""GELU, elementwise, in the erf form or the tanh form."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, ELEMENTWISE, INPUT, LAYOUTS, MASK, RULES, SAME, STRIDES, TO_FLOAT32, forms


def gelu(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


def terms(input, approximate="none"):
    return scale.gelu_tanh(input) if approximate == "tanh" else scale.gelu_erf(input)


TASK = Task(
    suite="tritonbench_t",
    name="gelu",
    signature="gelu(input, approximate='none')",
    contract=f"""GELU of input, elementwise. approximate='none': x·Φ(x) = 0.5·x·(1 + erf(x/√2)); 'tanh': 0.5·x·(1 +
tanh(√(2/π)·(x + 0.044715·x³))).
{INPUT} {SAME}
{RULES}
Every finite magnitude is judged: the result tends to x and to 0. Non-finite inputs follow PyTorch: −inf gives NaN.""",
    dims=DIMS,
    forms=forms("input"),
    reference=gelu,
    keywords=(Keyword("approximate", "none", ("tanh",)),),
    scale=terms,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "The default is the erf form; the tanh form differs from it by up to 5e-4.",
        "tanh as (e^2g − 1)/(e^2g + 1) is inf/inf from g = 45 on.",
        TO_FLOAT32,
        MASK,
        STRIDES,
    ),
)
