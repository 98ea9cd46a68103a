"""Log-softmax of a linear layer."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    BIAS,
    DEPTH,
    DTYPE,
    FOLLOWS,
    LAYOUTS,
    LINEAR,
    OVERFLOW,
    PRODUCT,
    PRODUCTS,
    RULES,
    WEIGHT,
    linear,
    linear_fits,
)


def log_softmax_linear(input, weight, bias=None, dim=-1, dtype=None):
    return torch.log_softmax(F.linear(input, weight, bias), dim)


def carried(value, size, dim):
    """An error of scale `size` in the layer's result moves the result by itself and by its mean under the softmax."""
    p = scale.finite(torch.softmax(value, dim))
    return size + (p * size).sum(dim, keepdim=True)


def terms(input, weight, bias=None, dim=-1, dtype=None):
    value, size, _ = linear(input, weight, bias)
    whole = scale.log_sum_exp(value.movedim(dim, -1)).movedim(-1, dim)
    return scale.finite(value).abs() + whole + carried(value, size, dim)


def rounded(input, weight, bias=None, dim=-1, dtype=None):
    value, _, size = linear(input, weight, bias)
    return carried(value, size, dim)


def fits(input, weight, bias=None, dim=-1, dtype=None):
    return linear_fits(input, weight).all(dim, keepdim=True)


TASK = Task(
    suite="tritonbench_t",
    name="log_softmax_linear",
    signature="log_softmax_linear(input, weight, bias=None, dim=-1, dtype=None)",
    contract=f"""Log-softmax over dim of the linear layer x = input @ weight.T + bias: x − log Σ exp(x), stable for any
finite x.
{LINEAR} With dtype given, the result has it, and input is cast to it first.
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims=PRODUCT,
    forms=(
        Form("rank2", (Tensor("input", ("M", "K")), WEIGHT, BIAS)),
        Form("rank3", (Tensor("input", ("B", "M", "K")), WEIGHT, BIAS), keyword_values={"dim": (1, 2)}),
        Form("rank1", (Tensor("input", ("K",)), WEIGHT, BIAS), keyword_values={"dim": (0,)}),
        Form("no_bias", (Tensor("input", ("M", "K")), WEIGHT), tier="keywords"),
    ),
    reference=log_softmax_linear,
    keywords=(Keyword("dim", -1, (1, 0)), DTYPE),
    scale=terms,
    storage=rounded,
    in_range=fits,
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:weight", "strided:bias"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "The sum runs over a whole row of the layer's result: N may exceed one block.",
        "Lanes past the end of a row must not take part: −inf, not 0.",
        "log(softmax(x)) is −inf where x lies 104 below the maximum: subtract the logarithm of the sum instead.",
        "bias may be None; input may have 1 or 3 dimensions.",
    ),
)
