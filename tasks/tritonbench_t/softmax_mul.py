"""Softmax over a dim, times another tensor or a number."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    DIMS,
    DTYPE,
    FOLLOWS,
    LANES,
    LAYOUTS,
    NUMBER,
    OUT,
    ROWS,
    ROWWISE,
    RULES,
    STRIDES,
    TO_FLOAT32,
    along,
    beside,
    destination,
    written,
)

HALF_NORMAL = 2.0**-14  # smallest normal float16: below it the rounding of a weight is absolute


@written
def softmax_mul(input, other, dim, dtype=None):
    return torch.softmax(input, dim) * other


@beside
def terms(input, other, dim, dtype=None):
    return along(scale.softmax, input, dim) * scale.finite(torch.as_tensor(other)).abs()


@beside
def rounded(input, other, dim, dtype=None):
    p = torch.softmax(input, dim)
    return torch.where((p > 0) & (p < HALF_NORMAL), HALF_NORMAL, p) * scale.finite(torch.as_tensor(other)).abs()


@beside
def clear(input, other, dim, dtype=None):
    """Not what hangs on a weight that float32 may flush to 0."""
    p = torch.softmax(input, dim)
    return ~(p < 1e-36) | (p * scale.finite(torch.as_tensor(other)).abs() <= 4e-38) & torch.isfinite(
        torch.as_tensor(other)
    )


def form(name, shape, other, dim, tier="shapes"):
    tensors = (Tensor("input", shape), Tensor("other", other))
    return Form(name, tensors, tier=tier, keywords={} if name == "rank2" else {"dim": dim})


TASK = Task(
    suite="tritonbench_t",
    name="softmax_mul",
    signature="softmax_mul(input, other, dim, dtype=None, out=None)",
    contract=f"""Softmax of input over dim, times other, a tensor that broadcasts to input's shape or a number. A negative
dim counts from the end.
{ROWS} other has input's dtype. The result has input's shape and dtype, or dtype if given: input is then cast to it first.
{OUT}
{RULES}
The softmax may be rounded to the input dtype. Rows of any finite magnitude are judged: subtract the maximum first. {FOLLOWS}
Elements that hang on a softmax below 1e-36 are not judged.""",
    dims=DIMS,
    forms=(
        form("rank2", ("R", "N"), ("R", "N"), 1),
        form("rank1", ("N",), ("N",), 0),
        form("rank3", ("B", "R", "N"), ("B", "R", "N"), 2),
        form("rank4", (2, "B", "R", "N"), (2, "B", "R", "N"), 3),
        Form("number", (Tensor("input", ("R", "N")),), "keywords", {"other": 2.5, "dim": 1}),
        Form(
            "out",
            (Tensor("input", ("R", "N")), Tensor("other", ("R", "N")), destination("R", "N")),
            "keywords",
            {"dim": 1},
            {"dtype": ()},
        ),
        form("middle_of_3", ("B", "N", "R"), ("B", "N", "R"), 1, "keywords"),
        form("row", ("R", "N"), ("N",), 1, "keywords"),
        form("column", ("R", "N"), ("R", 1), 1, "keywords"),
    ),
    reference=softmax_mul,
    keywords=(NUMBER, Keyword("dim", 1, (-1, 0, -2), required=True), DTYPE),
    scale=terms,
    storage=rounded,
    in_range=clear,
    mutates=("out",),
    regimes=(*ROWWISE, "moderate_large", "spread", "infinite_rows", "offset", "sorted", "half_sum"),
    layouts=(*LAYOUTS, "transposed:other"),
    reduces="N",
    hazards=(
        LANES,
        "Load lanes past the end as −inf, not 0.",
        "other may be a Python number, or broadcast.",
        TO_FLOAT32,
        STRIDES,
    ),
)
