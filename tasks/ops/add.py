"""Sum x + y, with broadcasting and type promotion."""

from oracle.schema import Form, Output, Task, Tensor

from ._common import DIMS, ELEMENTWISE, LAYOUTS, MASK, RULES, forms


def add(x, y):
    return x + y


TASK = Task(
    suite="ops",
    name="add",
    signature="add(x, y)",
    contract=f"""Sum x + y, with PyTorch's broadcasting and type promotion.
x and y have 0 to 4 dimensions of any size ≥ 1 (or 0: an empty result), broadcastable against each other, and dtypes
float32, float16 or bfloat16, equal or not; y may be int64. The result has the broadcast shape and
torch.promote_types(x.dtype, y.dtype).
{RULES}
Non-finite inputs follow torch.add: inf − inf is NaN.""",
    dims=DIMS,
    forms=(
        *forms("x", "y"),
        Form("row", (Tensor("x", ("R", "N")), Tensor("y", ("N",)))),
        Form("column", (Tensor("x", ("R", "N")), Tensor("y", ("R", 1)))),
        Form("outer", (Tensor("x", ("R", 1)), Tensor("y", ("B", 1, "N")))),
        Form("left", (Tensor("x", ("N",)), Tensor("y", ("B", "R", "N")))),
        Form("middle", (Tensor("x", ("B", 1, "N")), Tensor("y", ("B", "R", "N")))),
        Form("scalar", (Tensor("x", ("R", "N")), Tensor("y", ()))),
        Form("with_float32", (Tensor("x", ("R", "N")), Tensor("y", ("R", "N"), dtype="float32")), tier="dtypes"),
        Form("with_float16", (Tensor("x", ("R", "N")), Tensor("y", ("R", "N"), dtype="float16")), tier="dtypes"),
        Form("with_bfloat16", (Tensor("x", ("R", "N")), Tensor("y", ("R", "N"), dtype="bfloat16")), tier="dtypes"),
        Form("with_int64", (Tensor("x", ("R", "N")), Tensor("y", ("R", "N"), dtype="int64")), tier="dtypes"),
    ),
    reference=add,
    outputs=(Output(dtype="promote", contiguous=True),),
    regimes=ELEMENTWISE,
    layouts=(*LAYOUTS, "transposed:y", "sliced:y", "expanded:y"),
    hazards=(
        "x and y may have different shapes: a broadcast dimension has stride 0.",
        "x and y may have different dtypes: promote before computing, and allocate the result in the promoted dtype.",
        "Each tensor has strides of its own.",
        MASK,
    ),
)
