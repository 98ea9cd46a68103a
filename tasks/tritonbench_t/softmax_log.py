"""Softmax of the logarithm over a dim: the share of each element in the sum."""

import torch

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import DIMS, DTYPE, LANES, LAYOUTS, ROWS, ROWWISE, RULES, SHAPES, STRIDES, TO_FLOAT32, along, normal


def softmax_log(input, dim=-1, dtype=None):
    return torch.softmax(torch.log(input), dim)


def shares(size):
    """p·(size + Σ p·size) over the last dim, of errors of scale `size(log x)` in the exponents."""

    def function(input):
        logs = torch.log(input)
        p, terms = scale.finite(torch.softmax(logs, -1)), size(logs)
        return p * (terms + (p * terms).sum(-1, keepdim=True) + scale.blocked(input.shape[-1]) + 1)

    return function


def terms(input, dim=-1, dtype=None):
    """Logarithms err by 1 + |log x|, and the maximum is subtracted."""
    return along(
        shares(lambda logs: 1 + scale.finite(logs).abs() + scale.finite(logs).abs().amax(-1, True)), input, dim
    )


def rounded(input, dim=-1, dtype=None):
    return along(shares(lambda logs: scale.finite(logs).abs()), input, dim)


def clear(input, dim=-1, dtype=None):
    """Neither rows with a sum that may overflow or be flushed, nor with an infinity, where the two formulas differ."""

    def fits(x):
        whole = scale.sums_fit(x, keepdim=True) & scale.rows_within(x, 1e-36, 1e38) & (x != torch.inf).all(-1, True)
        return whole & normal(x)

    return along(fits, input, dim)


TASK = Task(
    suite="tritonbench_t",
    name="softmax_log",
    signature="softmax_log(input, dim=-1, dtype=None)",
    contract=f"""Softmax of log(input) over dim, for input ≥ 0: x / Σ x.
{ROWS} The result has input's shape and dtype, or dtype if given: input is then cast to it first.
{RULES}
The logarithm may be rounded to the input dtype. A row of zeros, or with a NaN, gives NaN. Not judged: negative or infinite
inputs, and rows whose sum overflows float32 or lies below 1e-36.""",
    dims=DIMS,
    forms=(
        *(
            Form(
                name, (Tensor("input", shape, values="positive"),), keyword_values={"dim": tuple(range(len(shape) - 1))}
            )
            for name, shape in SHAPES.items()
        ),
        Form("first_of_3", (Tensor("input", ("N", "B", "R"), values="positive"),), "keywords", {"dim": 0}),
        Form("middle_of_3", (Tensor("input", ("B", "N", "R"), values="positive"),), "keywords", {"dim": 1}),
    ),
    reference=softmax_log,
    keywords=(Keyword("dim", -1, (0, 1)), DTYPE),
    scale=terms,
    storage=rounded,
    in_range=clear,
    regimes=(*ROWWISE, "sorted", "ties", "half_sum", "uniform_1e3"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=("log(0) is −inf and its share 0.", LANES, TO_FLOAT32, STRIDES),
)
