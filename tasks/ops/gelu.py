"""GELU, elementwise, in the erf form or the tanh form."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, OUTPUT, RULES, SAME, X, forms


def gelu(x, approximate="none"):
    return F.gelu(x, approximate=approximate)


def terms(x, approximate="none"):
    return scale.gelu_tanh(x) if approximate == "tanh" else scale.gelu_erf(x)


TASK = Task(
    suite="ops",
    name="gelu",
    signature="gelu(x, approximate='none')",
    contract=f"""GELU of x, elementwise. approximate='none': 0.5·x·(1 + erf(x/√2)); 'tanh': 0.5·x·(1 + tanh(√(2/π)·(x +
0.044715·x³))).
{X} {SAME}
{RULES}
Every finite magnitude is judged: nothing may overflow to NaN, and the result tends to x and to 0. Non-finite inputs:
+inf gives +inf, −inf and NaN give NaN, in both forms.""",
    dims=DIMS,
    forms=forms("x"),
    reference=gelu,
    outputs=OUTPUT,
    keywords=(Keyword("approximate", "none", ("tanh",)),),
    scale=terms,
    regimes=ELEMENTWISE,
    layouts=LAYOUTS,
    hazards=(
        "The default is the erf form; the tanh form differs from it by up to 5e-4 and is asked for by name.",
        "tanh as (e^2g − 1)/(e^2g + 1) is inf/inf from g = 45 on; 2·sigmoid(2g) − 1 is safe, and tl.tanh does not exist.",
        MASK,
    ),
)
