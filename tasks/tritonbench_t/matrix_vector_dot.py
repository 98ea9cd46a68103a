"""y = alpha·A x + beta·y in place, and the dot product of the new y with x."""

import torch

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import FOLLOWS, LANES, LAYOUTS, OVERFLOW, PRODUCTS, RULES


def matrix_vector_dot(A, x, y, alpha, beta):
    y.copy_(alpha * (A @ x) + beta * y)
    return torch.dot(y, x)


def addends(A, x, y, alpha, beta, product):
    return abs(alpha) * product + abs(beta) * scale.finite(y).abs()


def sums(A, x, y, alpha, beta):
    """Scales of the dot product and of y."""
    size = addends(A, x, y, alpha, beta, scale.product(A, x))
    products = scale.finite((alpha * (A @ x) + beta * y) * x)
    return (scale.finite(x).abs() * size).sum() + scale.row_sum(products), size


def rounded(A, x, y, alpha, beta):
    size = addends(A, x, y, alpha, beta, scale.finite(A @ x).abs())
    return (scale.finite(x).abs() * size).sum(), size


def fits(A, x, y, alpha, beta):
    lines = scale.products_fit(A, x)
    size = addends(A, x, y, alpha, beta, scale.finite(A).abs() @ scale.finite(x).abs())
    total = (scale.finite(x).abs() * size).sum()
    return lines.all() & (total <= scale.LARGEST) & ((total == 0) | (total >= 1e-34)), lines


TASK = Task(
    suite="tritonbench_t",
    name="matrix_vector_dot",
    signature="matrix_vector_dot(A, x, y, alpha, beta)",
    contract=f"""y becomes alpha·(A @ x) + beta·y in place, and the dot product of the new y with x is returned, 0-d. A is
(N, N), x and y are (N,); alpha and beta are numbers.
All have one dtype, float32, float16 or bfloat16, and so has the result. N is any size ≥ 1.
{RULES}
y changes as said. Each step may be rounded to the dtype, y before the dot product. {FOLLOWS} {OVERFLOW}""",
    dims={"N": Dim((1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 100, 127, 129, 255, 257, 513, 1025), base=64, naive=256)},
    forms=(Form("square", (Tensor("A", ("N", "N")), Tensor("x", ("N",)), Tensor("y", ("N",)))),),
    reference=matrix_vector_dot,
    keywords=(
        Keyword("alpha", 1.5, (1.0, 0.0, -2.0, 2), required=True, positional=True),
        Keyword("beta", 0.5, (1.0, 0.0, -1.0, 2), required=True, positional=True),
    ),
    scale=sums,
    storage=rounded,
    in_range=fits,
    mutates=("y",),
    regimes=tuple(regime for regime in PRODUCTS if regime != "outlier"),
    layouts=(*LAYOUTS, "transposed:A", "strided:x", "strided:y"),
    reduces="N",
    hazards=(
        "The dot product needs all of the new y: a second kernel, or sums joined by atomics into a zeroed cell.",
        "Every row adds up all of A's columns: rows may exceed one block.",
        LANES,
        "y may be strided: write through its stride.",
    ),
)
