"""Rows of a table by index."""

import torch.nn.functional as F

from oracle.schema import Dim, Form, Task, Tensor

from ._common import NONFINITE, OUTPUT, RULES


def embedding(idx, weight):
    return F.embedding(idx, weight)


TASK = Task(
    suite="ops",
    name="embedding",
    signature="embedding(idx, weight)",
    contract=f"""Rows of a table: out[…, :] = weight[idx[…], :] for idx int64 of 1 to 3 dimensions and weight (V, D).
idx holds numbers in [0, V), repeated in any order, and may have no elements (an empty result); V, D ≥ 1; weight has
dtype float32, float16 or bfloat16. The result has shape idx.shape + (D,) and weight's dtype.
{RULES}
Values are copied exactly, NaN and infinities included.""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "L": Dim((1, 2, 3, 7, 17), base=8, naive=32, empty=True, timed=8192),
        "V": Dim((1, 2, 3, 7, 33, 1000), base=64, timed=8192),
        "D": Dim((1, 2, 3, 7, 31, 33, 63, 65, 127, 129, 257, 1025), base=64, timed=512),
    },
    forms=tuple(
        Form(name, (Tensor("idx", shape, dtype="int64", values="index", high="V"), Tensor("weight", ("V", "D"))))
        for name, shape in {"rank1": ("L",), "rank2": ("B", "L"), "rank3": ("B", 2, "L")}.items()
    ),
    reference=embedding,
    outputs=OUTPUT,
    regimes=("normal", *NONFINITE, "large", "tiny", "signed_zeros"),
    layouts=("transposed", "sliced", "strided", "offset", "sliced:weight", "transposed:weight", "strided:idx"),
    hazards=(
        "weight's row pitch is weight.stride(0), not D: it may be a slice of a wider table.",
        "idx may have several dimensions, and strides of its own.",
        "D is not always a multiple of the block: mask both load and store.",
    ),
)
