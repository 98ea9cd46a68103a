"""Rotary position embedding by halves, on a part of the head dim."""

import torch

from oracle import scale
from oracle.schema import Dim, Form, Task, Tensor

from ._common import LAYOUTS, NONFINITE, OUTPUT, OVERFLOW, RULES


def rope(x, cos, sin):
    pairs = cos.shape[-1]
    cos, sin = cos[:, None, :], sin[:, None, :]
    low, high = x[..., :pairs], x[..., pairs : 2 * pairs]
    return torch.cat((low * cos - high * sin, high * cos + low * sin, x[..., 2 * pairs :]), dim=-1)


def terms(x, cos, sin):
    return (
        rope(scale.finite(x).abs(), scale.finite(cos).abs(), -scale.finite(sin).abs())
        .abs()
        .maximum(rope(scale.finite(x).abs(), scale.finite(cos).abs(), scale.finite(sin).abs()).abs())
    )


TASK = Task(
    suite="ops",
    name="rope",
    signature="rope(x, cos, sin)",
    contract=f"""Rotary embedding by halves: for x (B, S, H, D) and cos, sin (S, P), 2P ≤ D, with c = cos[s], n = sin[s]
at position s: out[…, 0:P] = x[…, 0:P]·c − x[…, P:2P]·n and out[…, P:2P] = x[…, P:2P]·c + x[…, 0:P]·n; x[…, 2P:] passes
through unchanged. All have one dtype, float32, float16 or bfloat16; cos and sin hold any numbers. B, S, H, P are any
sizes ≥ 1 (B, S, H may be 0: an empty result). The result has x's shape and dtype.
{RULES}
Each product may be rounded to the input dtype. Non-finite inputs follow the formula;
{OVERFLOW[0].lower()}{OVERFLOW[1:]}""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True, timed=4),
        "S": Dim((1, 2, 3, 7, 17, 33), base=8, naive=16, empty=True, timed=1024),
        "H": Dim((1, 2, 3, 5), base=2, empty=True, timed=16),
        "P": Dim((1, 2, 3, 7, 12, 16, 20, 31, 33, 40, 48, 64, 65, 1025), base=32, timed=32),
        "E": Dim((1, 2, 3, 16, 33), base=16),
    },
    forms=(
        Form("whole", (Tensor("x", ("B", "S", "H", "2*P")), Tensor("cos", ("S", "P")), Tensor("sin", ("S", "P")))),
        Form("partial", (Tensor("x", ("B", "S", "H", "2*P+E")), Tensor("cos", ("S", "P")), Tensor("sin", ("S", "P")))),
    ),
    reference=rope,
    outputs=OUTPUT,
    scale=terms,
    storage=terms,
    in_range=lambda x, cos, sin: terms(x, cos, sin) <= scale.LARGEST,
    regimes=("normal", "large", *NONFINITE, "small", "tiny", "zeros", "overflow_f16", "outlier"),
    layouts=(*LAYOUTS, "transposed:x", "strided:cos", "transposed:sin"),
    hazards=(
        "Pairs are (i, i + P), not (2i, 2i + 1).",
        "P is not always a power of two: padded lanes must not be rotated or stored.",
        "The tail from 2P on is copied; it must not stay unwritten.",
        "cos and sin follow the position s, not the batch or the head.",
    ),
)
