"""Linear layer: x @ weight.T, plus a bias if given."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Task, Tensor

from ._common import NONFINITE, OUTPUT, RULES, SIZES


def linear(x, weight, bias=None):
    return F.linear(x, weight, bias)


def terms(x, weight, bias=None):
    return scale.product(x, weight.mT) + (0 if bias is None else scale.finite(bias).abs())


def rounded(x, weight, bias=None):
    return scale.finite(F.linear(x, weight)).abs() + scale.finite(F.linear(x, weight, bias)).abs()


def fits(x, weight, bias=None):
    return scale.products_fit(x, weight.mT)


TASK = Task(
    suite="ops",
    name="linear",
    signature="linear(x, weight, bias=None)",
    contract=f"""x @ weight.T, plus bias if one is given, for x (…, K), weight (N, K) and bias (N,).
x has 1 to 3 dimensions; all sizes are ≥ 1 (leading ones of x may be 0: an empty result); all have one dtype, float32,
float16 or bfloat16. The result is (…, N) of that dtype. The product may be rounded to it before the bias is added.
{RULES}
Accumulate in float32 or better; for float32 inputs TF32 products are acceptable. Non-finite inputs follow
torch.nn.functional.linear (0·inf is NaN); results whose terms overflow or underflow float32 on the way are
not judged.""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "M": Dim(SIZES[:-2], base=32, naive=64, empty=True),
        "K": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 257, 1025, 4097), base=64, naive=64),
        "N": Dim(SIZES[:-2], base=32, naive=64),
    },
    forms=(
        Form("bias", (Tensor("x", ("M", "K")), Tensor("weight", ("N", "K")), Tensor("bias", ("N",)))),
        Form("no_bias", (Tensor("x", ("M", "K")), Tensor("weight", ("N", "K")))),
        Form("rank3", (Tensor("x", ("B", "M", "K")), Tensor("weight", ("N", "K")), Tensor("bias", ("N",)))),
        Form("rank1", (Tensor("x", ("K",)), Tensor("weight", ("N", "K")), Tensor("bias", ("N",)))),
    ),
    reference=linear,
    outputs=OUTPUT,
    scale=terms,
    in_range=fits,
    storage=rounded,
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
    layouts=(
        "transposed",
        "sliced",
        "strided",
        "expanded",
        "transposed:x",
        "transposed:weight",
        "sliced:x",
        "strided:bias",
    ),
    tf32=True,
    reduces="K",
    hazards=(
        "K is not always a multiple of the block: mask both loads along K, and do not drop the last block.",
        "Accumulate in float32 over all blocks of K, and round once after the loop.",
        "bias is added once, after the loop over K, and may be None.",
        "x may have 1 or 3 dimensions: all leading ones count as rows.",
    ),
)
