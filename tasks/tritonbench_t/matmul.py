"""Matrix product of tensors of any rank."""

import torch

from oracle import scale
from oracle.schema import Form, Task, Tensor

from ._common import DEPTH, FOLLOWS, LAYOUTS, OUT, OVERFLOW, PRODUCT, PRODUCTS, RULES, beside, destination, written


def form(name, first, second, tier="shapes"):
    return Form(name, (Tensor("input", first), Tensor("other", second)), tier=tier)


def out_form(name, first, second, out):
    return Form(name, (Tensor("input", first), Tensor("other", second), destination(*out)), tier="keywords")


TASK = Task(
    suite="tritonbench_t",
    name="matmul",
    signature="matmul(input, other, *, out=None)",
    contract=f"""Matrix product input @ other with the rules of torch.matmul: two vectors give their dot product (0-d), two
matrices their product, a vector beside a matrix counts as a row before it or a column after it, and leading (batch)
dimensions broadcast.
Sizes are ≥ 1 (B and M may be 0: an empty result); input and other have one dtype, float32, float16 or bfloat16, and so
has the result. {OUT}
{RULES}
float32 products may use TF32. {FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=(
        form("matrices", ("M", "K"), ("K", "N")),
        form("vectors", ("K",), ("K",)),
        form("matrix_vector", ("M", "K"), ("K",)),
        form("vector_matrix", ("K",), ("K", "N")),
        form("batches", ("B", "M", "K"), ("B", "K", "N")),
        form("batch_matrix", ("B", "M", "K"), ("K", "N")),
        form("matrix_batch", ("M", "K"), ("B", "K", "N")),
        form("broadcast", (2, 1, "M", "K"), ("B", "K", "N")),
        form("rank4", (2, "B", "M", "K"), (2, "B", "K", "N")),
        form("batch_vector", ("B", "M", "K"), ("K",)),
        out_form("out", ("M", "K"), ("K", "N"), ("M", "N")),
        out_form("out_batches", ("B", "M", "K"), ("B", "K", "N"), ("B", "M", "N")),
    ),
    reference=written(torch.matmul),
    scale=beside(scale.product),
    in_range=beside(scale.products_fit),
    mutates=("out",),
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:other"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "Accumulate in float32 over all blocks of K, and round once after the loop.",
        "Batch dimensions broadcast: a stride of 0 where one of them is 1 or missing.",
        "tl.dot needs blocks of at least 16: pad and mask small sizes.",
    ),
)
