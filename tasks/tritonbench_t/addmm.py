"""beta·input + alpha·(mat1 @ mat2)."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import DEPTH, FOLLOWS, LAYOUTS, OUT, OVERFLOW, PRODUCT, PRODUCTS, RULES, beside, destination, written

MATRICES = (Tensor("mat1", ("M", "K")), Tensor("mat2", ("K", "N")))


@written
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@beside
def terms(input, mat1, mat2, *, beta=1, alpha=1):
    return (beta * scale.finite(input)).abs() + abs(alpha) * scale.product(mat1, mat2)


@beside
def rounded(input, mat1, mat2, *, beta=1, alpha=1):
    return (beta * scale.finite(input)).abs() + scale.finite(alpha * (mat1 @ mat2)).abs()


@beside
def fits(input, mat1, mat2, *, beta=1, alpha=1):
    return scale.products_fit(mat1, mat2)


def form(name, shape, tier="shapes"):
    return Form(name, (Tensor("input", shape), *MATRICES), tier=tier)


TASK = Task(
    suite="tritonbench_t",
    name="addmm",
    signature="addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None)",
    contract=f"""beta·input + alpha·(mat1 @ mat2) for mat1 (M, K), mat2 (K, N) and input that broadcasts to (M, N); alpha
and beta are numbers. With beta = 0 input is ignored, NaN and infinities in it included.
Sizes are ≥ 1 (M may be 0: an empty result); all have one dtype, float32, float16 or bfloat16, and so has the result. {OUT}
{RULES}
Each step may be rounded to the dtype; float32 products may use TF32. {FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=(
        form("full", ("M", "N")),
        form("row", ("N",)),
        form("column", ("M", 1)),
        form("one_row", (1, "N")),
        form("zero_dim", (), "keywords"),
        Form("out", (Tensor("input", ("M", "N")), *MATRICES, destination("M", "N")), tier="keywords"),
        Form("ignored", (Tensor("input", ("M", "N")), *MATRICES), tier="keywords", keywords={"beta": 0}),
    ),
    reference=addmm,
    keywords=(Keyword("beta", 1, (0.5, 0, -2)), Keyword("alpha", 1, (0.5, 2, -1))),
    scale=terms,
    storage=rounded,
    in_range=fits,
    mutates=("out",),
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:mat1", "transposed:mat2", "transposed:input"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "input broadcasts: a stride of 0 where a size is 1 or missing.",
        "beta scales input, alpha the product; with beta = 0 input must not be read into the result.",
        "tl.dot needs blocks of at least 16: pad and mask small sizes.",
    ),
)
