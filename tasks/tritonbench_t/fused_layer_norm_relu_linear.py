"""Layer normalisation of ReLU of a linear layer.

The width to normalise is given beside the weight, so forms pair one with the other. With normalized_shape=None, whose
meaning is left open, the last dimension is taken; that and elementwise_affine are tier `keywords`.
"""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    DEPTH,
    FOLLOWS,
    LAYOUTS,
    LINEAR,
    OVERFLOW,
    PRODUCT,
    PRODUCTS,
    RULES,
    linear,
    linear_fits,
    through_norm,
)


def fused_layer_norm_relu_linear(input, weight, bias=None, normalized_shape=None, eps=1e-5, elementwise_affine=True):
    activated = torch.relu(F.linear(input, weight, bias))
    return F.layer_norm(activated, activated.shape[-1:], eps=eps)


def terms(input, weight, bias=None, normalized_shape=None, eps=1e-5, elementwise_affine=True):
    value, size, _ = linear(input, weight, bias)
    activated = torch.relu(value)
    return scale.layer_norm(activated, eps) + through_norm(activated, size, eps)


def rounded(input, weight, bias=None, normalized_shape=None, eps=1e-5, elementwise_affine=True):
    value, _, size = linear(input, weight, bias)
    return through_norm(torch.relu(value), size, eps)


def fits(input, weight, bias=None, normalized_shape=None, eps=1e-5, elementwise_affine=True):
    products = linear_fits(input, weight).all(-1, keepdim=True)
    return products & scale.squares_fit(torch.relu(F.linear(input, weight, bias)))


def form(name, leading, width, tier="shapes", bias=True, given=None):
    """A layer of a fixed width, which `normalized_shape` repeats (`given` in its place)."""
    tensors = (Tensor("input", (*leading, "K")), Tensor("weight", (width, "K")), Tensor("bias", (width,)))
    shape = width if given is None else given
    pinned = {} if given == "none" else {"normalized_shape": shape}
    return Form(name, tensors if bias else tensors[:2], tier=tier, keywords=pinned)


TASK = Task(
    suite="tritonbench_t",
    name="fused_layer_norm_relu_linear",
    signature="fused_layer_norm_relu_linear(input, weight, bias=None, normalized_shape=None, eps=1e-5, "
    "elementwise_affine=True)",
    contract=f"""A linear layer x = input @ weight.T + bias, then ReLU, then layer normalisation over the last dimension:
(r − mean) / sqrt(var + eps) with r = max(0, x) and var biased (Σ(r − mean)²/N). normalized_shape is N, as an int or a
tuple, or None for the same. There are no affine parameters, whatever elementwise_affine says.
{LINEAR}
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims={name: PRODUCT[name] for name in ("B", "M", "K")},
    forms=(
        form("rank2", ("M",), 64),
        form("width_33", ("M",), 33),
        form("width_1", ("M",), 1),
        form("width_3", ("M",), 3),
        form("width_129", ("M",), 129),
        form("width_1025", ("M",), 1025),
        form("rank3", ("B", "M"), 65),
        form("rank1", (), 31),
        form("as_tuple", ("M",), 48, "keywords", given=[48]),
        form("whole_row", ("M",), "K", "keywords", given="none"),
        form("no_bias", ("M",), 33, "keywords", bias=False),
    ),
    reference=fused_layer_norm_relu_linear,
    keywords=(
        Keyword("normalized_shape", None),
        Keyword("eps", 1e-5, (1e-3, 1.0)),
        Keyword("elementwise_affine", True, (False,)),
    ),
    scale=terms,
    storage=rounded,
    in_range=fits,
    regimes=PRODUCTS,
    layouts=(*LAYOUTS, "transposed:input", "transposed:weight", "strided:bias"),
    tf32=True,
    reduces="K",
    hazards=(
        DEPTH,
        "The order is linear, ReLU, normalisation.",
        "Mean and variance are of a whole row of the layer's result: the width may exceed one block.",
        "Lanes past the end of a row add (0 − mean)² to the variance unless masked after the subtraction.",
    ),
)
