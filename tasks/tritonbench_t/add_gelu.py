"""GELU of input + alpha·other."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import (
    DIMS,
    ELEMENTWISE,
    FOLLOWS,
    LAYOUTS,
    MASK,
    NUMBER,
    NUMBER_FORMS,
    OUT,
    RULES,
    STRIDES,
    TO_FLOAT32,
    beside,
    broadcast_forms,
    forms,
    moved,
    out_form,
    written,
)


def parts(input, other, alpha, approximate):
    """The sum, and the sizes of its terms and of GELU's."""
    total = torch.add(input, other, alpha=alpha)
    addends = scale.finite(input).abs() + scale.finite(torch.as_tensor(alpha * other)).abs()
    size = scale.gelu_tanh(total) if approximate == "tanh" else scale.gelu_erf(total)
    return total, addends, size


@written
def add_gelu(input, other, alpha=1, approximate="none"):
    return F.gelu(torch.add(input, other, alpha=alpha), approximate=approximate)


@beside
def terms(input, other, alpha=1, approximate="none"):
    total, addends, size = parts(input, other, alpha, approximate)
    return size + moved(F.gelu, total, addends)


@beside
def rounded(input, other, alpha=1, approximate="none"):
    total, addends, _ = parts(input, other, alpha, approximate)
    return moved(F.gelu, total, addends)


TASK = Task(
    suite="tritonbench_t",
    name="add_gelu",
    signature="add_gelu(input, other, alpha=1, approximate='none', out=None)",
    contract=f"""GELU of input + alpha·other, elementwise; other is a tensor or a number. approximate='none': x·Φ(x);
'tanh': 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
input and other have 0 to 4 dimensions of any size (0: an empty result), broadcastable against each other, and one dtype,
float32, float16 or bfloat16. {OUT}
{RULES}
The sum may be rounded to the input dtype. Every finite magnitude is judged. {FOLLOWS}""",
    dims=DIMS,
    forms=(
        *forms("input", "other"),
        out_form("input", "other"),
        *NUMBER_FORMS,
        *broadcast_forms(tier="keywords"),
    ),
    reference=add_gelu,
    keywords=(NUMBER, Keyword("alpha", 1, (2, 0.5, -1.5)), Keyword("approximate", "none", ("tanh",))),
    scale=terms,
    storage=rounded,
    mutates=("out",),
    regimes=ELEMENTWISE,
    layouts=(*LAYOUTS, "transposed:other"),
    hazards=(
        "The default is the erf form; the tanh form differs from it by up to 5e-4.",
        "tanh as (e^2g − 1)/(e^2g + 1) is inf/inf from g = 45 on.",
        TO_FLOAT32,
        MASK,
        STRIDES,
    ),
)
