"""Matrix product per batch."""

import torch

from oracle import scale
from oracle.schema import Dim, Form, Task, Tensor

from ._common import NONFINITE, OUTPUT, RULES, SIZES


def bmm(a, b):
    return torch.bmm(a, b)


TASK = Task(
    suite="ops",
    name="bmm",
    signature="bmm(a, b)",
    contract=f"""Matrix product per batch: out[i] = a[i] @ b[i] for a (B, M, K) and b (B, K, N).
B, M, N, K are any sizes ≥ 1 (B and M may be 0: an empty result); a and b have one dtype, float32, float16 or bfloat16.
The result is (B, M, N) of that dtype.
{RULES}
Accumulate in float32 or better; for float32 inputs TF32 products are acceptable. Non-finite inputs follow torch.bmm
(0·inf is NaN); results whose terms overflow or underflow float32 on the way are not judged.""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "M": Dim(SIZES[:-2], base=32, naive=64, empty=True),
        "K": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 257, 1025, 4097), base=64, naive=64),
        "N": Dim(SIZES[:-2], base=32, naive=64),
    },
    forms=(Form("rank3", (Tensor("a", ("B", "M", "K")), Tensor("b", ("B", "K", "N")))),),
    reference=bmm,
    outputs=OUTPUT,
    scale=scale.product,
    in_range=scale.products_fit,
    regimes=(
        "normal",
        *NONFINITE,
        "half_sum",
        "outlier",
        "offset",
        "overflow_f16",
        "small",
        "large",
        "tiny",
        "zeros",
        "equal",
    ),
    layouts=("transposed", "sliced", "strided", "expanded", "transposed:a", "transposed:b", "expanded:b", "strided:a"),
    tf32=True,
    reduces="K",
    hazards=(
        "K is not always a multiple of the block: mask both loads along K, and do not drop the last block.",
        "Accumulate in float32 over all blocks of K, and round once after the loop.",
        "Both operands move with the batch, by strides of their own (0 where expanded).",
        "a or b may be a transposed view, or 1 wide: pass all strides.",
    ),
)
