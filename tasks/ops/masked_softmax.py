"""Softmax over the True entries of the last dim."""

import torch

from oracle import scale
from oracle.schema import Form, Task, Tensor

from ._common import DIMS, LANES, LAYOUTS, OUTPUT, RULES, SAME, SOFTMAX, X, row_forms


def masked_softmax(x, mask):
    p = torch.softmax(x.masked_fill(~mask, -torch.inf), dim=-1)
    return torch.where(mask.any(-1, keepdim=True), p, torch.zeros_like(p))


def terms(x, mask):
    return scale.softmax(x.masked_fill(~mask, -torch.inf))


def judged(x, mask):
    return mask | ~torch.isnan(masked_softmax(x, mask))


TASK = Task(
    suite="ops",
    name="masked_softmax",
    signature="masked_softmax(x, mask)",
    contract=f"""Softmax of x over the entries of its last dimension where mask is True; entries where it is False are
0, and so is a whole row without a True entry.
{X} mask is a bool tensor of x's shape. {SAME}
{RULES}
Subtract the maximum over the True entries before the exponential: rows of any finite magnitude are judged. What x holds
where mask is False (NaN, infinities) has no effect. Where a True entry is NaN or +inf, or all True entries are −inf,
the True entries are NaN, as in torch.softmax, and False entries of such a row are not judged.""",
    dims=DIMS,
    forms=tuple(
        Form(form.name, (*form.tensors, Tensor("mask", form.tensors[0].shape, dtype="bool", values="mask")))
        for form in row_forms()
    ),
    reference=masked_softmax,
    outputs=OUTPUT,
    scale=terms,
    in_range=judged,
    regimes=("masked_rows", "hidden_elements", *SOFTMAX),
    layouts=(*LAYOUTS, "transposed:mask", "sliced:mask", "strided:mask", "expanded:mask"),
    reduces="N",
    hazards=(
        "A row without a True entry is zeros: a finite fill value such as −1e9 gives 1/N there, −inf gives NaN.",
        LANES,
        "mask is a bool tensor with strides of its own.",
        "Without subtracting the row's maximum exp overflows from 89 in float32.",
    ),
)
