"""Matrix product."""

from oracle import scale
from oracle.schema import Dim, Form, Task, Tensor

from ._common import NONFINITE, OUTPUT, RULES, SIZES


def matmul(a, b):
    return a @ b


TASK = Task(
    suite="ops",
    name="matmul",
    signature="matmul(a, b)",
    contract=f"""Matrix product a @ b of a (M, K) and b (K, N).
M, N, K are any sizes ≥ 1 (M may be 0: an empty result); a and b have one dtype, float32, float16 or bfloat16. The
result is (M, N) of that dtype.
{RULES}
Accumulate in float32 or better; for float32 inputs TF32 products are acceptable. Non-finite inputs follow torch.matmul
(0·inf is NaN); results whose terms overflow or underflow float32 on the way are not judged.""",
    dims={
        "M": Dim(SIZES, base=32, naive=64, empty=True),
        "K": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 257, 1025, 4097), base=64, naive=64),
        "N": Dim(SIZES[:-2], base=32, naive=64),
    },
    forms=(Form("rank2", (Tensor("a", ("M", "K")), Tensor("b", ("K", "N")))),),
    reference=matmul,
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
    layouts=("transposed", "sliced", "strided", "expanded", "transposed:a", "transposed:b", "sliced:b", "strided:a"),
    tf32=True,
    reduces="K",
    hazards=(
        "K is not always a multiple of the block: mask both loads along K, and do not drop the last block.",
        "Accumulate in float32 over all blocks of K, and round once after the loop.",
        "a or b may be a transposed view, or 1 wide: pass all strides.",
        "tl.dot needs blocks of at least 16: pad and mask small sizes.",
    ),
)
