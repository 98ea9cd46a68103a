"""What the files of this suite share: the paper's sizes beside ours, and the sentences that say what is judged."""

from oracle.schema import Dim, Form, Output, Tensor

DIMS = {
    "B": Dim((1, 2, 3, 8), base=2, naive=2, empty=True),
    "S": Dim((1, 3, 7, 16), base=4, naive=4, empty=True),
    "H": Dim(
        (1, 2, 3, 7, 31, 33, 64, 127, 129, 255, 257, 511, 513, 1000, 1023, 1024, 1025, 2049, 4097, 8193, 65537),
        base=256,
        naive=256,
    ),
}
FORMS = (Form("rank3", (Tensor("x", ("B", "S", "H")),)),)
OUTPUT = (Output(contiguous=True),)
PUBLISHED_ROWS = {"B": (1, 2, 8), "S": (1, 7, 128)}

X = "x has shape (B, S, H) with any H ≥ 1, dtype float32, float16 or bfloat16; B and S may be 0 (an empty result)."
COMMON = (
    "x may be contiguous or not (transposed, sliced with an offset, strided): use its strides, or copy it first. x is never "
    "modified; the result is a new contiguous tensor of x's shape, dtype and device. Compute in float32 or better whatever "
    "the dtype, and round once to the output dtype."
)
NORMAL = ("normal", "tiny", "large", "moderate_large", "zeros", "signed_zeros", "nonfinite", "one_nan", "one_inf")
