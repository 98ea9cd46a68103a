"""Mean cross entropy with an ignored class."""

import torch
import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import LAYOUTS, OUTPUT, OVERFLOW, RULES, SOFTMAX, WIDTHS


def cross_entropy(logits, target, ignore_index=-100):
    return F.cross_entropy(logits, target, ignore_index=ignore_index)


def losses(logits, target, ignore_index):
    return F.cross_entropy(logits, target, ignore_index=ignore_index, reduction="none")


def terms(logits, target, ignore_index=-100):
    keep = target != ignore_index
    hit = logits.gather(-1, torch.where(keep, target, 0)[:, None])
    row = torch.where(keep, (scale.log_sum_exp(logits) + scale.finite(hit).abs())[:, 0], 0.0)
    return (row.sum() + scale.row_sum(losses(logits, target, ignore_index))) / keep.sum().clamp(min=1)


def fits(logits, target, ignore_index=-100):
    return scale.sums_fit(losses(logits, target, ignore_index))


TASK = Task(
    suite="ops",
    name="cross_entropy",
    signature="cross_entropy(logits, target, ignore_index=-100)",
    contract=f"""Mean cross entropy: over the rows r of logits (R, V) whose target[r] is not ignore_index, the mean of
log Σ exp(logits[r]) − logits[r, target[r]]. Where no row is left (or R is 0): NaN.
logits have dtype float32, float16 or bfloat16, V ≥ 1; target (R,) is int64 in [0, V), or ignore_index, which is any
integer, also one in [0, V). The result is 0-d, of the dtype of logits.
{RULES}
Logits of any finite magnitude are judged: subtract the row's maximum before the exponential. A row that is ignored has
no effect, whatever it holds; else non-finite logits follow torch.nn.functional.cross_entropy. {OVERFLOW} The loss of a
row may be rounded to the dtype of logits before the mean.""",
    dims={"R": Dim((1, 2, 3, 7, 17, 33, 1025, 2051), base=8, empty=True), "V": Dim(WIDTHS[:-1], base=256, naive=1024)},
    forms=(
        Form(
            "rank2",
            (
                Tensor("logits", ("R", "V")),
                Tensor("target", ("R",), dtype="int64", values="index", high="V", sprinkle="ignore_index"),
            ),
        ),
    ),
    reference=cross_entropy,
    outputs=OUTPUT,
    keywords=(Keyword("ignore_index", -100, (3, 0, -1)),),
    scale=terms,
    in_range=fits,
    regimes=("all_ignored", "none_ignored", "hidden_rows", *SOFTMAX),
    layouts=(*LAYOUTS, "strided:target"),
    reduces="V",
    hazards=(
        "Rows with target == ignore_index count neither in the sum nor in the divisor, and their target is no valid column.",
        "ignore_index is an argument; if no row is left the mean is 0/0 = NaN, not 0.",
        "Lanes past V add exp(0 − max) to the sum unless loaded as −inf.",
        "Without subtracting the row's maximum exp overflows from 89 in float32.",
    ),
)
