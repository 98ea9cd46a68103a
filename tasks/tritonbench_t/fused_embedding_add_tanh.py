"""tanh of rows of a table plus another tensor.

`max_norm`, and `norm_type` with it, is left out: whether the table itself is then renormalised is not described.
"""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import FOLLOWS, LAYOUTS, NONFINITE, OUT, RULES, TO_FLOAT32, beside, destination, moved, written


@written
def fused_embedding_add_tanh(
    input_indices, weight, other, *, padding_idx=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    return torch.tanh(F.embedding(input_indices, weight) + other)


def addends(input_indices, weight, other):
    rows = F.embedding(input_indices, weight)
    return rows + other, scale.finite(rows).abs() + scale.finite(other).abs()


@beside
def terms(input_indices, weight, other, **_):
    """2·sigmoid(2x) − 1 subtracts numbers of size 1."""
    total, size = addends(input_indices, weight, other)
    return 1 + torch.tanh(total).abs() + moved(torch.tanh, total, size)


@beside
def rounded(input_indices, weight, other, **_):
    total, size = addends(input_indices, weight, other)
    return moved(torch.tanh, total, size)


def form(name, shape, other=None, tier="shapes", out=()):
    indices = Tensor("input_indices", shape, dtype="int64", values="index", high="V")
    return Form(name, (indices, Tensor("weight", ("V", "D")), Tensor("other", other or (*shape, "D")), *out), tier=tier)


TASK = Task(
    suite="tritonbench_t",
    name="fused_embedding_add_tanh",
    signature="fused_embedding_add_tanh(input_indices, weight, other, *, padding_idx=None, max_norm=None, norm_type=2.0, "
    "scale_grad_by_freq=False, sparse=False, out=None)",
    contract=f"""tanh(weight[input_indices] + other): rows of weight (V, D) by int64 indices of 1 to 3 dimensions, plus
other, which broadcasts to input_indices.shape + (D,), the result's shape.
Indices lie in [0, V), repeated in any order, and may have no elements (an empty result); V, D ≥ 1; weight and other have
one dtype, float32, float16 or bfloat16, and so has the result. max_norm is None; padding_idx, norm_type,
scale_grad_by_freq and sparse change nothing in the result. {OUT}
{RULES}
The sum may be rounded to the dtype. The error may be a few float32 roundings of 1, also near 0. {FOLLOWS}""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "L": Dim((1, 2, 3, 7, 33), base=16, naive=16, empty=True),
        "V": Dim((1, 2, 3, 7, 33, 1000), base=64),
        "D": Dim((1, 2, 3, 7, 31, 33, 63, 65, 127, 129, 257, 1000, 1025, 4097), base=64, naive=256),
    },
    forms=(
        form("rank2", ("B", "L")),
        form("rank1", ("L",)),
        form("rank3", ("B", 2, "L")),
        form("per_column", ("B", "L"), ("D",)),
        form("per_place", ("B", "L"), ("L", "D")),
        form("per_row", ("B", "L"), ("B", 1, "D")),
        form("out", ("B", "L"), None, "keywords", (destination("B", "L", "D"),)),
    ),
    reference=fused_embedding_add_tanh,
    keywords=(
        Keyword("padding_idx", None, (0,)),
        Keyword("norm_type", 2.0),
        Keyword("scale_grad_by_freq", False, (True,)),
        Keyword("sparse", False, (True,)),
    ),
    scale=terms,
    storage=rounded,
    mutates=("out",),
    regimes=("normal", *NONFINITE, "large", "tiny", "small", "uniform_1e3", "zeros"),
    layouts=(*LAYOUTS, "sliced:weight", "transposed:weight", "transposed:other", "strided:input_indices"),
    hazards=(
        "other broadcasts: a stride of 0 where a size is 1 or missing.",
        "The rows of weight are weight.stride(0) apart.",
        "D is not always a multiple of the block: mask both load and store.",
        TO_FLOAT32,
    ),
)
