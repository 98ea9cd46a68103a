"""tanh(sigmoid(input @ weight1))·weight2 + bias."""

import torch

from oracle import scale
from oracle.schema import Form, Task, Tensor

from ._common import (
    DEPTH,
    FOLLOWS,
    LAYOUTS,
    OUT,
    OVERFLOW,
    PRODUCT,
    PRODUCTS,
    RULES,
    beside,
    destination,
    moved,
    written,
)


def activated(x):
    return torch.tanh(torch.sigmoid(x))


@written
def combined_activation(input, weight1, weight2, bias):
    return activated(input @ weight1) * weight2 + bias


@beside
def terms(input, weight1, weight2, bias):
    """Near 0 a tangent that subtracts exponentials errs by a rounding of 1."""
    inner = 2 + moved(activated, input @ weight1, scale.product(input, weight1))
    return inner * scale.finite(weight2).abs() + scale.finite(bias).abs()


@beside
def rounded(input, weight1, weight2, bias):
    product = scale.finite(input @ weight1)
    inner = 2 * activated(product) + moved(activated, product, product.abs())
    return inner * scale.finite(weight2).abs() + scale.finite(bias).abs()


@beside
def fits(input, weight1, weight2, bias):
    return scale.products_fit(input, weight1)


def form(name, leading, second, third, tier="shapes", out=()):
    tensors = (Tensor("input", (*leading, "K")), Tensor("weight1", ("K", "N")), Tensor("weight2", second))
    return Form(name, (*tensors, Tensor("bias", third), *out), tier=tier)


TASK = Task(
    suite="tritonbench_t",
    name="combined_activation",
    signature="combined_activation(input, weight1, weight2, bias, *, out=None)",
    contract=f"""tanh(sigmoid(input @ weight1))·weight2 + bias for input (…, M, K) of 2 to 4 dimensions, weight1 (K, N), and
weight2 and bias that broadcast to the result's shape (…, M, N).
Sizes are ≥ 1 (leading ones of input may be 0: an empty result); all have one dtype, float32, float16 or bfloat16, and so
has the result. {OUT}
{RULES}
Each step may be rounded to the dtype; float32 products may use TF32. The error may be a few float32 roundings of weight2.
{FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=(
        form("rank2", ("M",), ("N",), ("N",)),
        form("full", ("M",), ("M", "N"), ("M", "N")),
        form("rank3", ("B", "M"), ("N",), ("N",)),
        form("rank3_full", ("B", "M"), ("B", "M", "N"), ("N",)),
        form("rank4", (2, "B", "M"), ("N",), ("N",)),
        form("columns", ("M",), ("M", 1), (1, "N")),
        form("zero_dim", ("M",), (), (), "keywords"),
        form("out", ("M",), ("N",), ("N",), "keywords", (destination("M", "N"),)),
    ),
    reference=combined_activation,
    scale=terms,
    storage=rounded,
    in_range=fits,
    mutates=("out",),
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:weight1", "strided:bias"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "weight2 and bias broadcast, each in its own way: strides of 0 where a size is 1 or missing.",
        "All leading dimensions of input count as rows.",
        "tl.tanh does not exist; exp of a large negative product overflows unless its sign is minded.",
    ),
)
