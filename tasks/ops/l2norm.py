"""L2 normalisation over the last dim."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Keyword, Task

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, ROWWISE, RULES, SAME, SQUARES, X, row_forms


def l2norm(x, eps=1e-12):
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(eps)


def eager(x, eps=1e-12):
    return F.normalize(x, dim=-1, eps=eps)


def terms(x, eps=1e-12):
    return scale.relative(l2norm(x, eps), x.shape[-1])


TASK = Task(
    suite="ops",
    name="l2norm",
    signature="l2norm(x, eps=1e-12)",
    contract=f"""x / max(‖x‖₂, eps), the norm over the last dimension.
{X} {SAME}
{RULES}
{SQUARES} Non-finite inputs follow PyTorch: a row with a NaN is NaN throughout; in a row with an infinity that element
is NaN and finite ones are 0.""",
    dims=DIMS,
    forms=row_forms(),
    reference=l2norm,
    outputs=OUTPUT,
    eager=eager,
    keywords=(Keyword("eps", 1e-12, (1e-3, 2.0)),),
    scale=terms,
    in_range=lambda x, eps=1e-12: scale.squares_fit(x),
    regimes=(*ROWWISE, "overflow_f16", "moderate_large", "half_sum"),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "An all-zero row is 0, not NaN: the norm is at least eps, which is an argument and not added.",
        "tl.maximum(norm, eps) turns a NaN norm into eps.",
        "Squares of float16 values above 255 overflow float16: square in float32.",
        LANES,
    ),
)
