"""The last two dims swapped, as a contiguous tensor."""

from oracle.schema import Dim, Form, Task, Tensor

from ._common import LAYOUTS, NONFINITE, OUTPUT, RULES, SIZES


def transpose(x):
    return x.mT.contiguous()


TASK = Task(
    suite="ops",
    name="transpose",
    signature="transpose(x)",
    contract=f"""x with its last two dimensions swapped, written out: a new contiguous tensor, not a view.
x has 2 to 4 dimensions of any size ≥ 1 (all but the last may be 0: an empty result) and dtype float32, float16 or
bfloat16. The result has x's dtype.
{RULES}
Values are copied exactly, NaN and infinities included.""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "M": Dim((*SIZES, 257, 1025), base=32, naive=64, empty=True),
        "N": Dim((*SIZES, 257, 1025), base=64),
    },
    forms=(
        Form("rank2", (Tensor("x", ("M", "N")),)),
        Form("rank3", (Tensor("x", ("B", "M", "N")),)),
        Form("rank4", (Tensor("x", (2, "B", "M", "N")),)),
    ),
    reference=transpose,
    outputs=OUTPUT,
    regimes=("normal", *NONFINITE, "large", "tiny", "signed_zeros", "outlier"),
    layouts=LAYOUTS,
    hazards=(
        "The result's row pitch is M, not N: squares hide it.",
        "The mask takes both edges (and, not or).",
        "Leading dimensions have strides of their own.",
        "x.mT alone is a view and launches nothing.",
    ),
)
