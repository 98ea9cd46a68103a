"""Small tasks with every feature that cases have: ranks, products, shared dims, keywords, indices, masks, destinations."""

import torch

from oracle.schema import Dim, Form, Keyword, Published, Task, Tensor

LAST = Dim((1, 2, 3, 7, 31, 33, 127, 129, 255, 513, 1000, 1025, 2049, 4097, 65537), base=256)
ROWS = Dim((1, 3, 17), base=8, naive=4, empty=True)


def _softmax(x):
    return torch.softmax(x, -1)


SOFTMAX = Task(
    suite="test",
    name="softmax",
    signature="softmax(x)",
    contract="softmax over the last dim",
    dims={"B": Dim((1, 2, 3), base=2, empty=True), "R": ROWS, "N": LAST},
    forms=(
        Form("rank2", (Tensor("x", ("R", "N")),)),
        Form("rank1", (Tensor("x", ("N",)),)),
        Form("rank3", (Tensor("x", ("B", "R", "N")),)),
    ),
    reference=_softmax,
    regimes=("normal", "large", "moderate_large", "zeros", "nonfinite", "one_nan", "offset", "spread", "ties"),
    layouts=("transposed", "sliced", "strided", "offset", "expanded"),
    reduces="N",
    published=Published(dims={"B": (1, 2, 8), "R": (1, 7, 128), "N": (1, 3, 256, 1025)}),
)

MATMUL = Task(
    suite="test",
    name="matmul",
    signature="matmul(a, b)",
    contract="matrix product",
    dims={
        "M": Dim((1, 3, 15, 17, 65), base=32, empty=True),
        "K": Dim((1, 3, 16, 33, 129, 1025, 4097), base=64),
        "N": Dim((1, 3, 15, 33), base=32, empty=True),
    },
    forms=(Form("rank2", (Tensor("a", ("M", "K")), Tensor("b", ("K", "N")))),),
    reference=torch.matmul,
    regimes=("normal", "large", "zeros", "one_nan", "correlated"),
    layouts=("transposed", "transposed:b", "sliced:a"),
    reduces="K",
)


def _attention(q, k, v, causal=False, scale=None):
    raise NotImplementedError("no test calls it")


ATTENTION = Task(
    suite="test",
    name="attention",
    signature="attention(q, k, v, causal=False, scale=None)",
    contract="attention with grouped heads",
    dims={
        "B": Dim((1, 2), base=1),
        "Hk": Dim((1, 2, 3), base=2),
        "G": Dim((1, 2, 3), base=1),
        "M": Dim((1, 7, 33, 65), base=32),
        "N": Dim((1, 7, 31, 65, 129), base=32),
        "D": Dim((8, 24, 64), base=32),
    },
    forms=(
        Form(
            "rank4",
            (
                Tensor("q", ("B", "Hk*G", "M", "D")),
                Tensor("k", ("B", "Hk", "N", "D")),
                Tensor("v", ("B", "Hk", "N", "D")),
            ),
        ),
    ),
    keywords=(Keyword("causal", False, (True,)), Keyword("scale", None, (0.5, 1.0))),
    reference=_attention,
    layouts=("transposed:k", "sliced"),
)


def _cross_entropy(logits, target, ignore_index=-100):
    return torch.nn.functional.cross_entropy(logits, target, ignore_index=ignore_index)


CROSS_ENTROPY = Task(
    suite="test",
    name="cross_entropy",
    signature="cross_entropy(logits, target, ignore_index=-100)",
    contract="mean cross entropy over the targets that are not ignored",
    dims={"R": Dim((1, 3, 17), base=8), "V": Dim((1, 3, 33, 1000), base=64)},
    forms=(
        Form("rank2", (Tensor("logits", ("R", "V")), Tensor("target", ("R",), None, "index", "V", "ignore_index"))),
    ),
    keywords=(Keyword("ignore_index", -100, (3, 0)),),
    reference=_cross_entropy,
    regimes=("moderate_large", "all_ignored", "one_nan"),
)


def _masked_softmax(x, mask):
    return torch.softmax(x.masked_fill(~mask, -torch.inf), -1).nan_to_num(0.0)


MASKED_SOFTMAX = Task(
    suite="test",
    name="masked_softmax",
    signature="masked_softmax(x, mask)",
    contract="softmax over the True entries",
    dims={"R": ROWS, "N": LAST},
    forms=(Form("rank2", (Tensor("x", ("R", "N")), Tensor("mask", ("R", "N"), values="mask"))),),
    reference=_masked_softmax,
    regimes=("masked_rows", "moderate_large"),
)


def _scatter(x, dim, out=None, *, weight, shift=(1, 2), dtype=None):
    raise NotImplementedError("no test calls it")


MIXED = Task(
    suite="test",
    name="mixed",
    signature="mixed(x, variance, out, dim, keepdim=False, *, weight, shift=(1, 2), dtype=None)",
    contract="every kind of argument",
    dims={"R": ROWS, "N": Dim((1, 3, 9), base=16)},
    forms=(
        Form(
            "plain",
            (
                Tensor("x", ("R", "N")),
                Tensor("variance", ("N",), values="positive"),
                Tensor("out", ("R", "N"), values="out"),
                Tensor("counts", ("N",), "int32"),
                Tensor("weight", (), "float16", keyword=True),
            ),
        ),
        Form("pinned", (Tensor("x", ("N",)),), tier="keywords", keywords={"dim": 0}),
    ),
    keywords=(
        Keyword("dim", -1, (0,), required=True, positional=True),
        Keyword("keepdim", False, (True,), positional=True),
        Keyword("shift", [1, 2], ([2, 1],)),
        Keyword("dtype", None, ("torch.float16",)),
    ),
    reference=_scatter,
    mutates=("counts",),
)

TASKS = (SOFTMAX, MATMUL, ATTENTION, CROSS_ENTROPY, MASKED_SOFTMAX, MIXED)
