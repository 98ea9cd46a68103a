"""What the files of this suite share: sizes, forms and the sentences of a contract that say what is judged."""

from oracle.schema import Dim

# Boundaries of the blocks that kernels use (2^k−1, 2^k, 2^k+1), one block of 1024 exceeded, long rows.
LAST = Dim(
    (1, 2, 3, 7, 31, 33, 63, 65, 100, 127, 129, 255, 257, 511, 513, 1000, 1023, 1024, 1025, 2049, 4097, 8193, 65537),
    base=256,
    naive=1024,
)
ROWS = Dim((1, 2, 3, 7, 17, 33), base=8, empty=True)
BATCH = Dim((1, 2, 3), base=2, empty=True)
DIMS = {"B": BATCH, "R": ROWS, "N": LAST}

DTYPES = "Inputs are float32, float16 or bfloat16"
EMPTY = "a dimension other than the last may have size 0, the result is then empty"
ANY_LAYOUT = (
    "Inputs may be contiguous or not (transposed, sliced with an offset, strided, expanded): use their strides, or copy "
    "them first. Inputs are never modified; the result is a new contiguous tensor on the input's device, which shares no "
    "memory with an input."
)
FLOAT32 = "Compute and accumulate in float32 or better whatever the dtype, and round once to the output dtype."
