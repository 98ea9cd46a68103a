"""Attention with grouped key and value heads and a causal mask."""

import math

import torch
import torch.nn.functional as F

from oracle import scale as scale_of
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import NONFINITE, OUTPUT, RULES


def parts(q, k, v, causal, factor):
    """Scaled scores, their error scale, v and the causal mask (True: seen); key heads repeated for query heads."""
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if factor is None else factor
    sizes = scale_of.product(scale_of.finite(q), scale_of.finite(k).mT) * abs(factor)
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
    return q @ k.mT * factor, sizes, v, seen.tril() if causal else seen


def attention(q, k, v, causal=False, scale=None):
    scores, _, v, seen = parts(q, k, v, causal, scale)
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1) @ v


def eager(q, k, v, causal=False, scale=None):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)


def terms(q, k, v, causal=False, scale=None):
    scores, sizes, v, seen = parts(q, k, v, causal, scale)
    return scale_of.attention(scores.masked_fill(~seen, -torch.inf), sizes, v)


def rounded(q, k, v, causal=False, scale=None):
    return attention(q, k, scale_of.finite(v).abs(), causal, scale)


def fits(q, k, v, causal=False, scale=None):
    return scale_of.attention_fits(*parts(q, k, v, causal, scale))


TASK = Task(
    suite="ops",
    name="attention",
    signature="attention(q, k, v, causal=False, scale=None)",
    contract=f"""Attention: softmax(q·kᵀ·scale)·v per batch and head, for q (B, H, M, D) and k, v (B, Hk, N, D). Hk
divides H; query head h uses key and value head h // (H/Hk). scale is a positive number, by default 1/√D. causal=True:
query i sees the keys j ≤ i (the mask is top-left aligned, also where M ≠ N).
All have one dtype, float32, float16 or bfloat16; all sizes are ≥ 1 (B and M may be 0: an empty result). The result is
(B, H, M, D) of that dtype.
{RULES}
Keep scores, softmax and both accumulators in float32, subtracting the row's maximum; products of float32 inputs are
full float32 (input_precision="ieee"; not TF32). Weights may be rounded to the input dtype before the second product.
Non-finite inputs follow PyTorch, except that those hidden by the mask or by a weight of 0 are not judged, nor are rows
of nothing but −inf or where float32 cannot settle the scores.""",
    dims={
        "B": Dim((1, 2, 3), base=1, empty=True, timed=4),
        "Hk": Dim((1, 2, 3), base=2, timed=8),
        "G": Dim((1, 2, 3), base=1, timed=1),
        "M": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 100, 129), base=32, naive=64, empty=True, timed=512),
        "N": Dim((1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 257), base=64, timed=512),
        "D": Dim((1, 2, 3, 8, 15, 16, 17, 33, 48, 64, 65, 80), base=32, naive=64, timed=64),
    },
    forms=(
        Form(
            "rank4",
            (
                Tensor("q", ("B", "Hk*G", "M", "D")),
                Tensor("k", ("B", "Hk", "N", "D")),
                Tensor("v", ("B", "Hk", "N", "D")),
            ),
        ),
    ),
    reference=attention,
    eager=eager,
    outputs=OUTPUT,
    keywords=(Keyword("causal", False, (True,)), Keyword("scale", None, (0.5, 0.0625))),
    scale=terms,
    storage=rounded,
    in_range=fits,
    regimes=(
        "normal",
        "overflow_f16",
        *NONFINITE,
        "sorted",
        "outlier",
        "far_negative",
        "correlated",
        "moderate_large",
        "equal",
        "zeros",
        "small",
        "offset",
    ),
    layouts=("transposed", "sliced", "strided", "expanded", "transposed:k", "sliced:v", "expanded:k"),
    hazards=(
        "Keys past N get −inf before the softmax; the mask is j ≤ i whatever M and N are.",
        "A causal loop over blocks of keys must reach all of the diagonal block.",
        "Query head h uses key head h // (H/Hk), not h % Hk.",
        "When the running maximum moves, rescale both the sum and the accumulator.",
        "Scores pass 65504 for float16 inputs of a few hundred: keep them in float32.",
    ),
)
