"""Tasks of one family: elementwise functions of one tensor, and of two by broadcasting."""

from typing import Any

from oracle.schema import Form, Keyword, Task, Tensor

from ._common import (
    DIMS,
    ELEMENTWISE,
    INPLACE,
    INPLACE_FORM,
    INPLACE_KEYWORD,
    INPUT,
    LAYOUTS,
    MASK,
    NUMBER,
    NUMBER_FORMS,
    OUT,
    PROMOTED,
    RULES,
    SAME,
    STRIDES,
    TO_FLOAT32,
    Function,
    beside,
    broadcast_forms,
    forms,
    out_form,
    promotion_forms,
    written,
)


def unary(
    name: str,
    function: Function,
    says: str,
    *,
    positive: bool = False,
    scale: Function | None = None,
    in_range: Function | None = None,
    hazards: tuple[str, ...] = (),
) -> Task:
    """NAME(input, *, out=None). `positive`: inputs are, but for a form of tier `values`."""
    values = "positive" if positive else "any"
    negative = Form("negative", (Tensor("input", ("R", "N")),), tier="values")
    return Task(
        suite="tritonbench_t",
        name=name,
        signature=f"{name}(input, *, out=None)",
        contract=f"{says}\n{INPUT} {SAME} {OUT}\n{RULES}",
        dims=DIMS,
        forms=(*forms("input", values=values), *((negative,) if positive else ()), out_form("input", values=values)),
        reference=written(function),
        scale=beside(scale) if scale else None,
        in_range=beside(in_range) if in_range else None,
        mutates=("out",),
        regimes=ELEMENTWISE,
        layouts=LAYOUTS,
        hazards=(*hazards, TO_FLOAT32, MASK, STRIDES),
    )


def activation(
    name: str,
    function: Function,
    says: str,
    *,
    signature: str,
    keywords: tuple[Keyword, ...] = (),
    scale: Function | None = None,
    hazards: tuple[str, ...] = (),
) -> Task:
    """NAME(input, …, inplace=False)."""
    return Task(
        suite="tritonbench_t",
        name=name,
        signature=signature,
        contract=f"{says}\n{INPUT} {SAME} {INPLACE}\n{RULES}",
        dims=DIMS,
        forms=(*forms("input"), INPLACE_FORM),
        reference=written(function),
        keywords=(*keywords, INPLACE_KEYWORD),
        scale=beside(scale) if scale else None,
        mutates=("changed",),
        regimes=ELEMENTWISE,
        layouts=LAYOUTS,
        hazards=(*hazards, MASK, STRIDES),
    )


def binary(
    name: str,
    function: Function,
    says: str,
    *,
    keywords: tuple[Keyword, ...] = (),
    signature: str = "",
    whole: bool = True,
    hazards: tuple[str, ...] = (),
    **judged: Any,
) -> Task:
    """NAME(input, other, *, …, out=None) with broadcasting and type promotion; `whole`: other may be int64. `judged`:
    the task's scale, storage and in_range."""
    mixed = ("float32", "float16", "bfloat16", *(("int64",) if whole else ()))
    return Task(
        suite="tritonbench_t",
        name=name,
        signature=signature or f"{name}(input, other, *, out=None)",
        contract=f"""{says}
With PyTorch's broadcasting and type promotion; other is a tensor or a number. Tensors have 0 to 4 dimensions of any size
(0: an empty result) and dtypes float32, float16 or bfloat16, equal or not{"; other may be int64" if whole else ""}. The
result has the broadcast shape and the promoted dtype. {OUT}
{RULES}""",
        dims=DIMS,
        forms=(
            *forms("input", "other"),
            *broadcast_forms(),
            out_form("input", "other"),
            *NUMBER_FORMS,
            *promotion_forms(*mixed),
        ),
        reference=written(function),
        outputs=PROMOTED,
        keywords=(NUMBER, *keywords),
        mutates=("out",),
        regimes=ELEMENTWISE,
        layouts=(*LAYOUTS, "transposed:other", "sliced:other"),
        hazards=(
            "input and other may have different shapes: a broadcast dimension has stride 0.",
            "other may be a Python number: there is no pointer to pass then.",
            *hazards,
            MASK,
            STRIDES,
        ),
        **{key: beside(value) for key, value in judged.items()},
    )
