"""Matrix product of two float32 matrices."""

import torch

from oracle import scale
from oracle.schema import Dim, Form, Output, Published, Task, Tensor


def matmul(a, b):
    return torch.matmul(a, b)


TASK = Task(
    suite="seed",
    name="matmul",
    signature="matmul(a, b)",
    contract="""Matrix product a @ b of a (M, K) and b (K, N), both float32, any M, N, K ≥ 1 (M and N may be 0: an
empty result). The result is (M, N), float32.
a and b may be contiguous or not (transposed, sliced with an offset, strided, expanded), each in its own way: use their
strides, or copy them first. They are never modified; the result is a new contiguous tensor on their device that shares
no memory with them.
Accumulate in float32; TF32 products are acceptable. Non-finite inputs follow torch.matmul (0·inf is NaN); results whose
terms overflow or underflow float32 on the way are not judged.""",
    dims={
        "M": Dim((1, 2, 3, 7, 15, 17, 33, 65, 129), base=32, naive=64, empty=True),
        "K": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65, 127, 129, 257, 1025, 4097), base=64, naive=128),
        "N": Dim((1, 2, 3, 7, 15, 17, 33, 63, 65), base=32, naive=64, empty=True),
    },
    forms=(Form("rank2", (Tensor("a", ("M", "K")), Tensor("b", ("K", "N")))),),
    reference=matmul,
    outputs=(Output(contiguous=True),),
    scale=scale.product,
    in_range=scale.products_fit,
    dtypes=("float32",),
    regimes=(
        "normal",
        "nonfinite",
        "one_nan",
        "one_inf",
        "outlier",
        "offset",
        "small",
        "large",
        "tiny",
        "zeros",
        "equal",
    ),
    layouts=("transposed", "sliced", "strided", "expanded", "transposed:a", "transposed:b", "sliced:b", "strided:a"),
    hazards=(
        "K is not always a multiple of the block: mask both loads along K, and do not drop the last block.",
        "Accumulate over all blocks of K (acc += …), in float32.",
        "M, N or K may be 1, and a or b may be a transposed view: pass all strides.",
        "tl.dot needs blocks of at least 16: pad and mask small sizes.",
    ),
    tf32=True,
    reduces="K",
    published=Published(
        dims={"M": (1, 2, 7, 128), "K": (1, 3, 16, 127, 256), "N": (1, 2, 15, 64)},
        dtypes=("float32",),
        atol={"float32": 5e-2},
    ),
)
