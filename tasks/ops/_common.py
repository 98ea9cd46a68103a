"""What the files of this suite share: sizes, forms and the sentences of a contract that say what is judged."""

from oracle.schema import Dim, Form, Output, Tensor

# Boundaries of the blocks that kernels use (2^k−1, 2^k, 2^k+1), blocks of 1024 and 4096 full and exceeded, one long row.
WIDTHS = (
    1,
    2,
    3,
    7,
    31,
    33,
    63,
    65,
    100,
    127,
    129,
    255,
    257,
    511,
    513,
    1000,
    1023,
    1024,
    1025,
    2049,
    4096,
    4097,
    8192,
    8193,
    65537,
)
DIMS = {
    "B": Dim((1, 2, 3), base=2, empty=True),
    "R": Dim((1, 2, 3, 7, 17, 33, 265), base=8, empty=True),  # 265: more rows than a GPU has processors, twice
    "N": Dim(WIDTHS, base=256, naive=1024),
}
SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129)


def forms(*names: str, dtype: str | None = None, values: str = "any") -> tuple[Form, ...]:
    """Tensors `names`, all of one shape, of rank 2 (the base), 1, 3 and 4."""
    shapes = {"rank2": ("R", "N"), "rank1": ("N",), "rank3": ("B", "R", "N"), "rank4": (2, "B", "R", "N")}
    return tuple(Form(form, tuple(Tensor(name, shape) for name in names)) for form, shape in shapes.items())


def row_forms(*weights: str, beside: tuple[str, ...] = ()) -> tuple[Form, ...]:
    """As `forms` for x and tensors `beside` it, with weights of shape (N,) after them."""
    extra = tuple(Tensor(name, ("N",)) for name in weights)
    return tuple(Form(form.name, form.tensors + extra) for form in forms("x", *beside))


OUTPUT = (Output(contiguous=True),)
LAYOUTS = ("transposed", "sliced", "strided", "offset", "expanded")
NONFINITE = ("nonfinite", "one_nan", "one_inf")
ELEMENTWISE = ("normal", "large", *NONFINITE, "small", "uniform_1e3", "tiny", "negative", "zeros", "signed_zeros")
ROWWISE = ("normal", "large", *NONFINITE, "outlier", "constant_rows", "zeros", "tiny", "far_negative", "small", "equal")
SOFTMAX = (*ROWWISE, "lowest", "moderate_large", "spread", "infinite_rows", "offset", "sorted", "half_sum")

X = """x has 1 to 4 dimensions of any size ≥ 1 (all but the last may be 0: an empty result) and dtype float32, float16 or
bfloat16."""
SAME = "The result has x's shape and dtype."
ROW = "The result has x's shape without the last dimension (one value, 0-d, for a vector) and"
RULES = """Inputs may be contiguous or not (transposed, sliced with an offset, strided, expanded), each in its own way: use
their strides, or copy them first. They are never modified; the result is a new contiguous tensor on their device that shares
no memory with them. Compute and accumulate in float32 or better whatever the dtype, and round once to the output dtype."""
OVERFLOW = "Sums of absolute terms that overflow float32 are not judged."
SQUARES = "Rows whose squares overflow float32 are not judged."

MASK = "The number of elements is rarely a multiple of the block: mask the load and the store."
TO_FLOAT32 = "tl.exp, tl.log and tl.sqrt refuse float16 and bfloat16: convert to float32 first."
LANES = "Lanes past the end of a row must not take part; rows may exceed one block, or be 1 long."
