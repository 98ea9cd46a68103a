"""SiLU of batch normalisation by running statistics.

`training=True` is left out: whether, and by which variance, the running statistics change then is not described.
"""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import ELEMENTWISE, FOLLOWS, LAYOUTS, MASK, OVERFLOW, RULES, TO_FLOAT32, gains, moved


def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return F.silu(parts(input, running_mean, running_var, weight, bias, eps)[0])


def parts(input, mean, var, weight, bias, eps):
    """The normalised value, and the sizes of the terms it is made of."""
    shape = (1, -1) + (1,) * (input.ndim - 2)
    mean, factor = mean.reshape(shape), torch.rsqrt(var + eps).reshape(shape)
    gain = 1.0 if weight is None else weight.reshape(shape)
    shift = torch.zeros((), dtype=input.dtype) if bias is None else bias.reshape(shape)
    value = (input - mean) * factor * gain + shift
    terms = (scale.finite(input).abs() + scale.finite(mean).abs()) * scale.finite(factor * gain).abs()
    return value, terms + scale.finite(shift).abs()


def terms(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    value, size = parts(input, running_mean, running_var, weight, bias, eps)
    return scale.silu(value) + 2 * moved(F.silu, value, size)


def rounded(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    value, size = parts(input, running_mean, running_var, weight, bias, eps)
    return moved(F.silu, value, size)


def fits(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    value, size = parts(input, running_mean, running_var, weight, bias, eps)
    sizes = scale.finite(input).abs() + scale.finite(running_mean).abs().amax()
    fit = (size <= scale.LARGEST) & (sizes * eps**-0.5 <= scale.LARGEST) & scale.silu_fits(value)
    return fit if weight is None else fit & gains(weight).reshape((1, -1) + (1,) * (input.ndim - 2))


CHANNELS = (Tensor("running_mean", ("C",)), Tensor("running_var", ("C",), values="positive"))
AFFINE = (Tensor("weight", ("C",)), Tensor("bias", ("C",)))


def form(name, shape, tier="shapes", affine=AFFINE):
    return Form(name, (Tensor("input", shape), *CHANNELS, *affine), tier=tier)


TASK = Task(
    suite="tritonbench_t",
    name="silu_batch_norm",
    signature="silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, "
    "eps=1e-5)",
    contract=f"""silu(x) = x·sigmoid(x) of the batch normalisation x = (input − running_mean) / sqrt(running_var + eps) ·
weight + bias, per channel: dimension 1 of input, which is (B, C), (B, C, L) or (B, C, H, W). The other tensors are (C,);
weight and bias may be None. training is False and momentum is not used.
All have one dtype, float32, float16 or bfloat16; running_var ≥ 0. B may be 0 (an empty result). The result has input's
shape and dtype.
{RULES}
Each step may be rounded to the dtype. {FOLLOWS} {OVERFLOW} Nor are channels with an
infinite weight.""",
    dims={
        "B": Dim((1, 2, 3, 7), base=2, empty=True),
        "C": Dim((1, 2, 3, 7, 17, 33), base=8),
        "H": Dim((1, 3, 7, 9, 31), base=8),
        "W": Dim((1, 3, 7, 15, 17, 33, 63, 65, 127, 129, 257, 1025), base=32, naive=256),
    },
    forms=(
        form("rank4", ("B", "C", "H", "W")),
        form("rank3", ("B", "C", "W")),
        form("rank2", ("B", "C")),
        form("no_affine", ("B", "C", "H", "W"), "keywords", ()),
        form("no_bias", ("B", "C", "H", "W"), "keywords", AFFINE[:1]),
    ),
    reference=silu_batch_norm,
    keywords=(Keyword("eps", 1e-5, (1e-3, 1.0)), Keyword("momentum", 0.1, (0.5,))),
    scale=terms,
    storage=rounded,
    in_range=fits,
    regimes=(*ELEMENTWISE, "constant_rows"),
    layouts=(*LAYOUTS, "transposed:input", "strided:weight", "strided:running_mean"),
    hazards=(
        "The channel is dimension 1, not the last one: index (i // (H·W)) % C of the flat position.",
        "weight and bias may be None.",
        TO_FLOAT32,
        MASK,
    ),
)
