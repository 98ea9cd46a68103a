"""What the files of this suite share: sizes, forms, destinations, error scales through a chain, sentences of a contract.

The operators are those of TritonBench-T, by their published signatures and descriptions. The recorded answers were asked
for with prompts that state neither dtypes, layouts nor special values. So the tiers `base` and `shapes` hold nothing but
what those descriptions state: float32, contiguous, finite, default keywords. Optional arguments, numbers in place of
tensors, negative dims and destinations belong to `keywords`.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Output, Tensor

# Boundaries of the blocks that kernels use (2^k−1, 2^k, 2^k+1), one block of 1024 or 4096 exceeded, one long row.
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
    4097,
    8193,
    65537,
)
DIMS = {
    "B": Dim((1, 2, 3), base=2, empty=True),
    "R": Dim((1, 2, 3, 7, 17, 33), base=8, empty=True),
    "N": Dim(WIDTHS, base=256, naive=1024),
}
SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129)
DEPTHS = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 256, 257, 1000, 1025, 4097)
PRODUCT = {
    "B": Dim((1, 2, 3), base=2, empty=True),
    "M": Dim(SIZES, base=32, naive=16, empty=True),
    "K": Dim(DEPTHS, base=64, naive=256),
    "N": Dim(SIZES, base=32, naive=256),
}

SHAPES: dict[str, tuple[str | int, ...]] = {
    "rank2": ("R", "N"),
    "rank1": ("N",),
    "rank3": ("B", "R", "N"),
    "rank4": (2, "B", "R", "N"),
}
PROMOTED = (Output(dtype="promote"),)

# Regimes and layouts.

NONFINITE = ("nonfinite", "one_nan", "one_inf")
ELEMENTWISE = ("normal", "large", *NONFINITE, "small", "uniform_1e3", "tiny", "negative", "zeros", "signed_zeros")
ROWWISE = ("normal", "large", *NONFINITE, "outlier", "constant_rows", "zeros", "tiny", "far_negative", "small", "equal")
EXTREMES = (
    "normal",
    "ties",
    "far_negative",
    *NONFINITE,
    "infinite_rows",
    "sorted",
    "outlier",
    "constant_rows",
    "large",
)
PRODUCTS = ("normal", *NONFINITE, "half_sum", "outlier", "overflow_f16", "small", "large", "tiny", "zeros", "equal")
LAYOUTS = ("transposed", "sliced", "strided", "offset", "expanded")

# Sentences of a contract.

INPUT = """input has 0 to 4 dimensions of any size (0: an empty result) and dtype float32, float16 or bfloat16."""
LINEAR = """input is (…, K) of 1 to 3 dimensions, weight (N, K), bias (N,) if given; leading sizes of input may be 0 (an
empty result); all have one dtype, float32, float16 or bfloat16, and so has the result. Each step may be rounded to it.
float32 products may use TF32."""
ROWS = """input has 1 to 4 dimensions and dtype float32, float16 or bfloat16; dimensions that are not reduced may be 0 (an
empty result)."""
SAME = "The result has input's shape and dtype."
RULES = """Inputs may be contiguous or not, each in its own way: use their strides, or copy them first. They are not modified
unless this is said here. Compute and accumulate in float32 or better whatever the dtype, and round once to the output
dtype."""
OUT = "out, if given, has the result's shape and dtype, and strides of its own; it takes the result and is returned."
INPLACE = "inplace=True writes the result into input (there called changed) and returns it."
FOLLOWS = "Non-finite inputs follow PyTorch."
OVERFLOW = "Elements whose terms overflow or underflow float32 on the way are not judged."

MASK = "The number of elements is rarely a multiple of the block: mask the load and the store."
LANES = "Lanes past the end of a row must not take part; rows may exceed one block, or be 1 long."
DEPTH = "K is not always a multiple of the block: mask both loads along K, and do not drop the last block."
TO_FLOAT32 = "tl.exp, tl.log and tl.sqrt refuse float16 and bfloat16: convert to float32 first."
STRIDES = "Inputs may have strides of their own; empty_like of a transposed tensor is transposed."


# Forms.


def forms(*names: str, values: str = "any") -> tuple[Form, ...]:
    """Tensors `names`, all of one shape, of rank 2 (the base), 1, 3, 4; of rank 0, with plain keywords, in tier `empty`."""
    same = {
        name: tuple(Tensor(each, shape, values=values) for each in names)
        for name, shape in {**SHAPES, "rank0": ()}.items()
    }
    plain = dict.fromkeys(("alpha", "approximate", "negative_slope", "rounding_mode"), ())
    return (
        *(Form(name, same[name]) for name in SHAPES),
        Form("rank0", same["rank0"], tier="empty", keyword_values=plain),
    )


def destination(*shape: str | int, name: str = "out") -> Tensor:
    return Tensor(name, shape, values="out", keyword=True)


def out_form(*names: str, values: str = "any") -> Form:
    """Elementwise with a destination `out`."""
    tensors = (*(Tensor(name, SHAPES["rank2"], values=values) for name in names), destination(*SHAPES["rank2"]))
    return Form("out", tensors, tier="keywords")


# In this form alone the first argument changes: it has a name of its own, so that `mutates` means no other form.
INPLACE_FORM = Form("inplace", (Tensor("changed", ("R", "N")),), tier="keywords", keywords={"inplace": True})
INPLACE_KEYWORD = Keyword("inplace", False)


def broadcast_forms(tier: str = "shapes") -> tuple[Form, ...]:
    """input and other of different shapes."""
    shapes: dict[str, tuple[tuple[str | int, ...], tuple[str | int, ...]]] = {
        "row": (("R", "N"), ("N",)),
        "column": (("R", "N"), ("R", 1)),
        "outer": (("R", 1), ("B", 1, "N")),
        "left": (("N",), ("B", "R", "N")),
    }
    pairs = {name: (Tensor("input", first), Tensor("other", second)) for name, (first, second) in shapes.items()}
    return tuple(Form(name, tensors, tier=tier) for name, tensors in pairs.items())


INPUT_ALONE = (Tensor("input", SHAPES["rank2"]),)
# Beside a tensor: a Python number (with `NUMBER` among the keywords) and a 0-d tensor.
NUMBER_FORMS = (
    Form("number", INPUT_ALONE, tier="keywords", keywords={"other": 2.5}),
    Form("zero_dim", (*INPUT_ALONE, Tensor("other", ())), tier="keywords"),
    Form("whole_number", INPUT_ALONE, tier="keywords", keywords={"other": -3}),
)
NUMBER = Keyword("other", None, positional=True)


def promotion_forms(*dtypes: str) -> tuple[Form, ...]:
    """`other` of a fixed dtype beside input's."""
    return tuple(
        Form(f"with_{dtype}", (Tensor("input", ("R", "N")), Tensor("other", ("R", "N"), dtype=dtype)), tier="dtypes")
        for dtype in dtypes
    )


def row_forms(values: str = "any") -> tuple[Form, ...]:
    """input over a required `dim`: the last one of rank 2, 1, 3 and 4; other and negative dims in tier `keywords`."""

    def form(name: str, shape: tuple[str | int, ...], dim: int, tier: str) -> Form:
        return Form(name, (Tensor("input", shape, values=values),), tier=tier, keywords={"dim": dim})

    return (
        Form("rank2", (Tensor("input", SHAPES["rank2"], values=values),)),
        form("rank1", ("N",), 0, "shapes"),
        form("rank3", ("B", "R", "N"), 2, "shapes"),
        form("rank4", (2, "B", "R", "N"), 3, "shapes"),
        form("middle_of_3", ("B", "N", "R"), 1, "keywords"),
        form("first_of_3", ("N", "B", "R"), -3, "keywords"),
    )


DIM = Keyword("dim", 1, (-1, 0, -2), required=True, positional=True)
KEEPDIM = Keyword("keepdim", False, (True,))

# Reductions over all dims by default.
WHOLE_DIMS = {
    "B": Dim((1, 2, 3), base=2),
    "R": Dim((1, 2, 3, 7, 17, 33), base=8),
    "N": Dim(WIDTHS, base=256, naive=1024),
}


def several(dims: dict[str, Dim]) -> dict[str, Dim]:
    """With at least two elements along N."""
    return {**dims, "N": Dim(WIDTHS[1:], base=256, naive=1024)}


DIM_OR_ALL = Keyword("dim", None, (1, 0, -1, [0, 1]))
WHOLE_FORMS = (
    Form("rank2", (Tensor("input", SHAPES["rank2"]),)),
    Form("rank1", (Tensor("input", SHAPES["rank1"]),), keyword_values={"dim": (0, -1)}),
    Form("rank3", (Tensor("input", SHAPES["rank3"]),), keyword_values={"dim": (2, 1, 0, -1, [0, 2], [-1, -2])}),
    Form("rank4", (Tensor("input", SHAPES["rank4"]),), keyword_values={"dim": (3, 1, -2, [1, 3], [0, 1, 2, 3])}),
    Form(
        "out",
        (Tensor("input", SHAPES["rank2"]), destination()),
        tier="keywords",
        keywords={"dim": None},
        keyword_values={"keepdim": (), "dtype": ()},
    ),
    Form(
        "out_dim",
        (Tensor("input", SHAPES["rank2"]), destination("R")),
        tier="keywords",
        keywords={"dim": 1},
        keyword_values={"keepdim": (), "dtype": ()},
    ),
)
# A lower precision is left out: whether the input is rounded to it first would decide the result.
DTYPE = Keyword("dtype", None, ("torch.float32", "torch.float64"))

# Linear layers.

WEIGHT, BIAS = Tensor("weight", ("N", "K")), Tensor("bias", ("N",))


def linear_forms(vector: str = "shapes") -> tuple[Form, ...]:
    """input of rank 2 with bias (the base), rank 3, rank 1 (in tier `vector`), and without bias."""
    return (
        Form("rank2", (Tensor("input", ("M", "K")), WEIGHT, BIAS)),
        Form("rank3", (Tensor("input", ("B", "M", "K")), WEIGHT, BIAS)),
        Form("rank1", (Tensor("input", ("K",)), WEIGHT, BIAS), tier=vector),
        Form("no_bias", (Tensor("input", ("M", "K")), WEIGHT), tier="keywords"),
    )


# References with destinations.

Function = Callable[..., Any]


def written(function: Function) -> Function:
    """The operator with its destinations: `out`, or the first argument if `inplace`, takes the result and is returned."""

    @functools.wraps(function)
    def writing(first: torch.Tensor, *rest: Any, out: Any = None, inplace: bool = False, **keywords: Any) -> Any:
        result = function(first, *rest, **keywords)
        target = first if inplace else out
        return result if target is None else target.copy_(result)

    return writing


def beside(function: Function) -> Function:
    """A scale, storage or range of the result, and the same of the destination that holds it too."""

    @functools.wraps(function)
    def both(*args: Any, out: Any = None, inplace: bool = False, **keywords: Any) -> Any:
        size = function(*args, **keywords)
        return size, size

    return both


# Rows along any dims, and error scales through a chain of operators.


def dims_of(x: torch.Tensor, dim: int | tuple[int, ...] | None) -> list[int]:
    """The dims reduced over, not negative, in order; None means all."""
    given = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return sorted(d % x.ndim for d in given)


def rows(x: torch.Tensor, dim: int | tuple[int, ...] | None) -> torch.Tensor:
    """x with the dims `dim` made one and moved last."""
    over = dims_of(x, dim)
    left = [d for d in range(x.ndim) if d not in over]
    return x.permute(*left, *over).flatten(len(left))


def back(size: torch.Tensor, x: torch.Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> torch.Tensor:
    """One number per row of `rows(x, dim)` in the shape that a reduction of x gives."""
    over = dims_of(x, dim)
    return size.reshape([1 if d in over else n for d, n in enumerate(x.shape)]) if keepdim else size


def along(function: Function, x: torch.Tensor, dim: int) -> torch.Tensor:
    """A function over the last dim, taken over `dim`."""
    return function(x.movedim(dim, -1)).movedim(-1, dim)


def moved(function: Function, x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """|f'(x)|·size: what an error of scale `size` in the argument of an elementwise function does to its value."""
    with torch.enable_grad():
        point = x.detach().clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(function(point).sum(), point)
    return scale.finite(slope.abs() * size)


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Of input @ weight.T + bias: the value, its error scale, and what is rounded if each step is stored."""
    product = torch.nn.functional.linear(input, weight)
    shift = torch.zeros((), dtype=product.dtype) if bias is None else bias
    terms = scale.product(input, weight.mT) + scale.finite(shift).abs()
    return product + shift, terms, scale.finite(product).abs() + scale.finite(product + shift).abs()


def linear_fits(input: torch.Tensor, weight: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return scale.products_fit(input, weight.mT)


def normwise(values: torch.Tensor) -> torch.Tensor:
    """The largest |value| of all: accuracy relative to the whole result, not to each element near a zero of it."""
    size = scale.finite(values).abs()
    return size.amax().expand(size.shape) if size.numel() else size


def normal(input: torch.Tensor) -> torch.Tensor:
    """Not a positive number below the smallest normal float32, which may be flushed to 0."""
    return (input <= 0) | ~(input < 1.2e-38)


def gains(weight: torch.Tensor) -> torch.Tensor:
    """Not an infinite weight: (x − mean)·weight and x·weight − mean·weight, both usual, then differ."""
    return ~torch.isinf(weight)


def through_norm(z: torch.Tensor, size: torch.Tensor, eps: float) -> torch.Tensor:
    """Of (z−mean)/sqrt(var+eps) over the last dim, for an error of scale `size` in z: by z, the mean and the deviation."""
    centred = z - z.mean(-1, keepdim=True)
    inverse = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    normal = (centred * inverse).abs()
    spread = normal * (size * normal).mean(-1, keepdim=True)
    return scale.finite(inverse * (size + size.mean(-1, keepdim=True) + spread))
