"""Attention of one head: softmax(q kᵀ / √D) v."""

import math

import torch

from oracle import scale
from oracle.schema import Dim, Form, Published, Task, Tensor

from ._common import NONFINITE, OUTPUT


def attention(q, k, v):
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


def scores(q, k):
    """Scaled scores and their error scale."""
    root = math.sqrt(q.shape[-1])
    return q @ k.mT / root, scale.product(scale.finite(q), scale.finite(k).mT) / root


def eager(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]


TASK = Task(
    suite="seed",
    name="attention",
    signature="attention(q, k, v)",
    contract="""Attention of one head, no mask: softmax(q·kᵀ/√D)·v for q (M, D), k (N, D), v (N, D), all of one dtype,
float32, float16 or bfloat16; any M, N, D ≥ 1 (M may be 0: an empty result). The inputs may be contiguous or not
(transposed, sliced with an offset, strided, expanded), each in its own way: use their strides, or copy them first. They
are never modified; the result is a new contiguous tensor (M, D) of their dtype on their device. Accumulate both
products and the softmax in float32, subtracting the row's maximum; products of float32 inputs are full float32
(input_precision="ieee"; not TF32). Weights may be rounded to the input dtype before the second product. Non-finite
inputs follow PyTorch, except that hidden by a weight of 0 they are not judged, nor are rows where float32 cannot settle
the scores.""",
    dims={
        "M": Dim((1, 2, 3, 7, 8, 15, 17, 33, 65, 129), base=16, naive=64, empty=True, timed=4096),
        "N": Dim(
            (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 256, 257), base=64, naive=64, timed=4096
        ),
        "D": Dim((1, 2, 3, 8, 15, 16, 17, 24, 33, 64, 65, 80), base=32, naive=64, timed=64),
    },
    forms=(Form("rank2", (Tensor("q", ("M", "D")), Tensor("k", ("N", "D")), Tensor("v", ("N", "D")))),),
    reference=attention,
    eager=eager,
    outputs=OUTPUT,
    scale=lambda q, k, v: scale.attention(*scores(q, k), v),
    storage=lambda q, k, v: torch.softmax(scores(q, k)[0], -1) @ scale.finite(v).abs(),
    in_range=lambda q, k, v: scale.attention_fits(*scores(q, k), v),
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
    layouts=("transposed", "sliced", "strided", "expanded", "transposed:k", "sliced:v"),
    hazards=(
        "Keys past N must get −inf before the softmax (a score of 0 still weighs), and N may be 1 or exceed one block.",
        "When the running maximum moves, rescale both the sum and the accumulator.",
        "Scores are divided by √D, also where D is padded to a power of two.",
        "Scores pass 65504 for float16 inputs of a few hundred: keep them in float32.",
    ),
    published=Published(
        dims={"M": (1, 2, 8), "N": (1, 3, 16, 64, 128, 256), "D": (8, 16, 64)}, atol={"float32": 1e-3, "float16": 5e-2}
    ),
)
