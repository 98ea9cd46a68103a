"""Group normalisation of (input1 + input2)·input2."""

import math

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import (
    FOLLOWS,
    LANES,
    LAYOUTS,
    OUT,
    OVERFLOW,
    ROWWISE,
    RULES,
    beside,
    destination,
    gains,
    through_norm,
    written,
)


@written
def fused_add_mul_groupnorm(input1, input2, weight, bias, num_groups, eps=1e-5):
    normal = F.group_norm((input1 + input2) * input2, num_groups, eps=eps)
    return normal * channelwise(weight, input1) + channelwise(bias, input1)


def grouped(x, num_groups):
    return x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)


def channelwise(x, like):
    """One value per channel, to broadcast to `like`."""
    return x.reshape((1, -1) + (1,) * (like.ndim - 2))


def affine(normal, input1, weight, bias):
    sizes = (scale.finite(x).abs() for x in (weight, bias))
    gain, shift = (channelwise(size, input1) for size in sizes)
    return normal.reshape(input1.shape) * gain + shift


def products(input1, input2, num_groups):
    """The product and the size of its terms, a row per group."""
    terms = (scale.finite(input1).abs() + scale.finite(input2).abs()) * scale.finite(input2).abs()
    return grouped((input1 + input2) * input2, num_groups), grouped(terms, num_groups)


@beside
def terms(input1, input2, weight, bias, num_groups, eps=1e-5):
    value, size = products(input1, input2, num_groups)
    return affine(scale.layer_norm(value, eps) + through_norm(value, size, eps), input1, weight, bias)


@beside
def rounded(input1, input2, weight, bias, num_groups, eps=1e-5):
    value, size = products(input1, input2, num_groups)
    normal = F.layer_norm(value, value.shape[-1:], eps=eps)
    return affine(scale.finite(normal).abs() + through_norm(value, size, eps), input1, weight, bias)


@beside
def fits(input1, input2, weight, bias, num_groups, eps=1e-5):
    value, size = products(input1, input2, num_groups)
    groups = (scale.squares_fit(value) & scale.squares_fit(size)).expand(value.shape).reshape(input1.shape)
    return groups & channelwise(gains(weight), input1)


def form(name, shape, groups, tier="shapes", second=None, out=()):
    channels = (Tensor("weight", (shape[1],)), Tensor("bias", (shape[1],)))
    tensors = (Tensor("input1", shape), Tensor("input2", second or shape), *channels, *out)
    return Form(name, tensors, tier=tier, keywords={} if name == "rank4" else {"num_groups": groups})


FOUR = ("B", "4*G", "H", "W")

TASK = Task(
    suite="tritonbench_t",
    name="fused_add_mul_groupnorm",
    signature="fused_add_mul_groupnorm(input1, input2, weight, bias, num_groups, eps=1e-5, *, out=None)",
    contract=f"""Group normalisation of M = (input1 + input2)·input2: the channels (dimension 1) are split into num_groups
groups of neighbours, each sample's group is normalised over all its elements, (M − mean) / sqrt(var + eps) with var biased,
and then multiplied by weight and shifted by bias per channel.
input1 is (B, C), (B, C, L) or (B, C, H, W), input2 broadcasts to it, weight and bias are (C,); num_groups divides C, and
a group has more than one element. All have one dtype, float32, float16 or bfloat16. B may be 0 (an empty result). The
result has input1's shape and dtype. {OUT}
{RULES}
Each step may be rounded to the dtype. Two passes, or an equally stable method, are demanded. {FOLLOWS} {OVERFLOW}
Nor are channels with an infinite weight.""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "G": Dim((1, 2, 3, 5), base=2),
        "H": Dim((1, 3, 7, 9), base=8),
        "W": Dim((2, 3, 7, 15, 17, 33, 63, 65, 127, 129, 257, 1025), base=16, naive=256),
    },
    forms=(
        form("rank4", FOUR, 4),
        form("rank3", ("B", "3*G", "W"), 3),
        form("rank2", ("B", "4*W"), 4),
        form("one_group", ("B", "3*G", "H", "W"), 1),
        form("every_channel", ("B", 6, "H", "W"), 6),
        form("per_channel", FOUR, 4, second=("4*G", 1, 1)),
        form("per_place", FOUR, 2, second=("H", "W")),
        form("per_sample", FOUR, 4, second=("B", 1, "H", "W")),
        form("out", FOUR, 4, "keywords", out=(destination(*FOUR),)),
    ),
    reference=fused_add_mul_groupnorm,
    keywords=(
        Keyword("num_groups", 4, (2, 1), required=True, positional=True),
        Keyword("eps", 1e-5, (1e-3, 1.0)),
    ),
    scale=terms,
    storage=rounded,
    in_range=fits,
    mutates=("out",),
    regimes=(*ROWWISE, "correlated"),
    layouts=(*LAYOUTS, "transposed:input1", "transposed:input2", "strided:weight"),
    reduces="W",
    hazards=(
        "input2 broadcasts: a stride of 0 where a size is 1 or missing.",
        "Mean and variance are over channels of the group times all places: more than one block, or a single element.",
        "Lanes past the end add (0 − mean)² to the variance unless masked after the subtraction.",
        LANES,
    ),
)
