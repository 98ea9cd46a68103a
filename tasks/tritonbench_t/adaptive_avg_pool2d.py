"""Adaptive average pooling. The published signature lists output_size alone; the input that its text describes is first."""

import torch.nn.functional as F

from oracle import scale
from oracle.schema import Dim, Form, Keyword, Task, Tensor

from ._common import FOLLOWS, LAYOUTS, OVERFLOW, ROWWISE, RULES


def adaptive_avg_pool2d(input, output_size):
    return F.adaptive_avg_pool2d(input, output_size)


def terms(input, output_size):
    """Mean of the terms, times the growth over the largest window."""
    sizes = output_size if isinstance(output_size, tuple) else (output_size, output_size)
    height, width = (h if s is None else -(-h // s) + 1 for h, s in zip(input.shape[-2:], sizes, strict=True))
    return scale.growth(height * width) * F.adaptive_avg_pool2d(scale.finite(input).abs(), output_size)


def fits(input, output_size):
    return F.adaptive_avg_pool2d(scale.finite(input).abs(), output_size) * input.shape[-2:].numel() <= scale.LARGEST


def form(name, shape, tier="shapes", size=None):
    return Form(name, (Tensor("input", shape),), tier=tier, keywords={} if size is None else {"output_size": size})


IMAGES = ("B", "C", "H", "W")

TASK = Task(
    suite="tritonbench_t",
    name="adaptive_avg_pool2d",
    signature="adaptive_avg_pool2d(input, output_size)",
    contract=f"""Mean over windows of the last two dimensions of input, (B, C, H, W) or (C, H, W), which so become S0 × S1.
output_size is S for both, or (S0, S1), where None keeps the input's size. Along a dimension of size H, output i is the mean
of the elements ⌊i·H/S⌋ up to but not including ⌈(i+1)·H/S⌉; windows may overlap, and S may exceed H.
B may be 0 (an empty result); other sizes are ≥ 1. The dtype is float32, float16 or bfloat16, and so is the result's.
{RULES}
{FOLLOWS} {OVERFLOW}""",
    dims={
        "B": Dim((1, 2, 3), base=2, empty=True),
        "C": Dim((1, 2, 3, 5), base=2),
        "H": Dim((1, 2, 3, 5, 7, 9, 15, 17, 31, 33), base=16),
        "W": Dim((1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 65, 129), base=32, naive=256),
    },
    forms=(
        form("rank4", IMAGES),
        form("rank3", ("C", "H", "W")),
        form("to_5", IMAGES, size=5),
        form("to_1", IMAGES, size=1),
        form("to_7", ("C", "H", "W"), size=7),
    ),
    reference=adaptive_avg_pool2d,
    keywords=(
        Keyword("output_size", 8, ([3, 5], [8, 8], [None, 4], [7, None], [1, 1]), required=True, positional=True),
    ),
    scale=terms,
    in_range=fits,
    regimes=(*ROWWISE, "half_sum"),
    layouts=LAYOUTS,
    hazards=(
        "Windows differ in size by one, and overlap, where S does not divide H: floor at the start, ceiling at the end.",
        "Divide by the window's own number of elements.",
        "output_size may be an int or a pair, and either may be None.",
        "input may have 3 dimensions.",
    ),
)
