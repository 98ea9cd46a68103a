"""What the files of this suite share: the paper's sizes beside ours, and the sentences that say what is judged."""

from oracle.schema import Dim, Form, Output, Tensor

DIMS = {
    "B": Dim((1, 2, 3, 8), base=2, empty=True),
    "S": Dim((1, 3, 7, 16), base=4, empty=True),
    "H": Dim(
        (1, 2, 3, 7, 31, 33, 63, 65, 127, 129, 255, 257, 511, 513, 1000, 1023, 1024, 1025, 2049, 4097, 8193, 65537), 256
    ),
}
FORMS = (Form("rank3", (Tensor("x", ("B", "S", "H")),)),)
OUTPUT = (Output(contiguous=True),)
LAYOUTS = ("transposed", "sliced", "strided", "offset", "expanded")
PUBLISHED = {"B": (1, 2, 8), "S": (1, 7, 128), "H": (1, 3, 256, 1025)}

X = "x has shape (B, S, H) with any H ≥ 1, dtype float32, float16 or bfloat16; B and S may be 0 (an empty result)."
COMMON = """x may be contiguous or not (transposed, sliced with an offset, strided, expanded): use its strides, or copy
it first. x is never modified; the result is a new contiguous tensor of x's shape, dtype and device that shares no memory
with x. Compute in float32 or better whatever the dtype, and round once to the output dtype."""

NONFINITE = ("nonfinite", "one_nan", "one_inf")
ELEMENTWISE = ("normal", "large", *NONFINITE, "small", "uniform_1e3", "tiny", "negative", "zeros", "signed_zeros")
ROWWISE = ("normal", "large", *NONFINITE, "outlier", "constant_rows", "zeros", "tiny", "far_negative", "small", "equal")
MASK = "The number of elements is rarely a multiple of the block: mask the load and the store."
TO_FLOAT32 = "tl.exp and tl.sqrt refuse float16 and bfloat16: convert to float32 first."
