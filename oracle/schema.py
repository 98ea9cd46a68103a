"""What a task is: everything that is stated to the author and judged by the oracle, in one object.

A `Task` feeds the prompt, the oracle and the naive checks, so that they cannot diverge. Task files under `tasks/` import
only this module (and `oracle.scale` for error scales) and define `TASK = Task(...)`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from oracle.syntax import parse_expression

FLOAT_DTYPES = ("float32", "float16", "bfloat16")

CORE_TIERS = ("base", "shapes", "dtypes")
FULL_TIERS = (*CORE_TIERS, "values", "keywords", "empty", "layouts")
TIERS = (*FULL_TIERS, "portability")
DOMAINS = {"core": CORE_TIERS, "full": FULL_TIERS}

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Dim:
    """One symbolic size: the values a case may take, boundaries included.

    `base` is the plain size of tier `base`: a power of two, so that neither masks nor tails are needed.
    `naive` is the size in the fixed shape of the naive checks (`base` where None).
    `timed` is the size in the shape that candidates are timed at (None: found by `oracle.speed.shape`).
    `empty` says that 0 is allowed by the contract (tier `empty`).
    """

    values: tuple[int, ...]
    base: int
    naive: int | None = None
    empty: bool = False
    timed: int | None = None

    def __post_init__(self) -> None:
        if self.base <= 0 or any(value <= 0 for value in self.values):
            raise ValueError("Dim sizes must be positive; an empty size is stated with empty=True")


def shape_entry(entry: str | int, dims: Mapping[str, int]) -> int:
    """Size of one shape entry: an int, a dim's name, or arithmetic over dims with + - * // (as "Hk*G", "R//2")."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in dims:
            return dims[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(f"shape entry {entry!r} is not an int, a dim of {sorted(dims)} or + - * // over them")

    return entry if isinstance(entry, int) else value(parsed_entry(entry))


@cache
def parsed_entry(entry: str) -> ast.expr:
    """Syntax tree of a shape entry."""
    return parse_expression(entry)


@dataclass(frozen=True)
class Tensor:
    """One tensor argument of a form.

    `dtype` None means the case's dtype; otherwise a fixed one ("int64", "bool", "float16", …).
    `values` says which values are meaningful:
      "any"       every float of the regime
      "positive"  the regime's absolute value (variances, logarithms); zero stays zero
      "index"     integers in [0, high); `high` is a shape entry
      "mask"      booleans, about three of four True, with planted all-False and all-True rows by regime
      "out"       a destination argument: its contents on entry are arbitrary and must be overwritten
    `sprinkle` names a keyword whose value replaces about one index in four (an ignore_index, say).
    `keyword` passes the tensor by name and not by position.
    """

    name: str
    shape: tuple[str | int, ...]
    dtype: str | None = None
    values: str = "any"
    high: str | int | None = None
    sprinkle: str | None = None
    keyword: bool = False

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(shape_entry(entry, dims) for entry in self.shape)


@dataclass(frozen=True)
class Form:
    """One way to call the operator: a rank, an optional argument left out, a broadcast. The first form is the base.

    `tier` is the tier that using this form instead of the base form belongs to. `keywords` pins keyword values in this
    form; `keyword_values` replaces a keyword's candidate values (a `dim` valid only for this rank, say).
    """

    name: str
    tensors: tuple[Tensor, ...]
    tier: str = "shapes"
    keywords: Mapping[str, Any] = field(default_factory=dict)
    keyword_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Keyword:
    """One non-tensor argument. JSON values only; a list stands for a tuple, "torch.float16" for that torch dtype.

    `default` is the value of tier `base`; it is passed explicitly only if `required` (no default in the signature).
    `values` are the other candidate values (tier `keywords`). `positional` passes it by position after the tensors.
    """

    name: str
    default: Any
    values: tuple[Any, ...] = ()
    required: bool = False
    positional: bool = False


@dataclass(frozen=True)
class Output:
    """One returned tensor. `dtype`: "input" (first floating tensor's), "promote" (torch promotion over the floating
    tensors), or a fixed name; a keyword called `dtype` with a value overrides it (as PyTorch).

    `index` marks an output of indices along a dim: "first" = the contract names the first of ties, so positions must be
    equal; "value" = judged by the value pointed at (the task's `pointed` gives it).
    `contiguous` True: the contract demands a contiguous result. None: strides are not judged.
    """

    name: str = "out"
    dtype: str = "input"
    index: str | None = None
    contiguous: bool | None = None


@dataclass(frozen=True)
class Published:
    """A schema as the seed paper published it, kept beside ours: dims, dtypes and the uniform input range."""

    dims: Mapping[str, tuple[int, ...]]
    dtypes: tuple[str, ...] = ("float32", "float16")
    low: float = -10.0
    high: float = 10.0
    atol: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One operator to implement.

    suite, name    id is SUITE/NAME. `entry` is the function a candidate must define (default: name).
    signature      as stated to the author, e.g. "softmax(x)".
    contract       prose: what the function computes, in the author's words; edge cases that are judged are stated here.
    reference      called as the candidate is, with float64 CPU copies of the inputs as rounded to the test dtype (integer
                   and bool tensors as they are); returns a tensor or a tuple, float64. Mutates arguments in `mutates`.
    eager          the same call in plain PyTorch in the test dtype: what naive checks compare with, and the baseline.
                   None: `reference` serves (it is written dtype-agnostically).
    scale          same call as reference: per output element the sum of absolute terms that a float32 implementation adds,
                   so that a right one errs by a small multiple of 2^-24 × scale. Broadcastable to the output; a tuple where
                   there are several outputs. None: |reference| (pure rounding).
    storage        same call: magnitude of terms that right implementations commonly round to the *test* dtype on the way
                   (attention's probabilities before the second product, say). None: |reference|.
    in_range       same call: bool, broadcastable to the output; False where the textbook float32 formula overflows or
                   underflows on the way, so that the element is not judged. None: every element is judged.
    pointed        same call plus `indices=`: float64 values that an index output points at (for Output.index="value").
    mutates        names of tensor arguments that change by contract; judged against the reference's changed copies.
    regimes        names of `oracle.values` regimes beyond `uniform` that the task is judged with.
    layouts        layouts beyond contiguous, each "NAME" or "NAME:TENSOR" (only that tensor).
    hazards        one line each: how kernels of this operator usually go wrong (used by the prompt `edge_cases`).
    tf32           a float32 product may use TF32; the prompt says so.
    reduces        name of the dim that is summed over, if any (drives long-row cases and half-accumulation checks).
    """

    suite: str
    name: str
    signature: str
    contract: str
    dims: Mapping[str, Dim]
    forms: tuple[Form, ...]
    reference: Callable[..., Any]
    entry: str = ""
    eager: Callable[..., Any] | None = None
    keywords: tuple[Keyword, ...] = ()
    outputs: tuple[Output, ...] = (Output(),)
    dtypes: tuple[str, ...] = FLOAT_DTYPES
    regimes: tuple[str, ...] = ("normal", "tiny", "large", "zeros", "nonfinite")
    layouts: tuple[str, ...] = ("transposed", "sliced", "strided")
    scale: Callable[..., Any] | None = None
    storage: Callable[..., Any] | None = None
    in_range: Callable[..., Any] | None = None
    pointed: Callable[..., Any] | None = None
    mutates: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    tf32: bool = False
    reduces: str | None = None
    published: Published | None = None
    digest: str = ""  # of the task file; set by the loader

    def __post_init__(self) -> None:
        object.__setattr__(self, "entry", self.entry or self.name)
        for form in self.forms:
            for tensor in form.tensors:
                tensor.sizes({name: dim.base for name, dim in self.dims.items()})
        unknown = {layout.partition(":")[2] for layout in self.layouts} - {""} - self.tensor_names()
        if unknown:
            raise ValueError(f"{self.id}: layouts name unknown tensors {sorted(unknown)}")

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.name}"

    def tensor_names(self) -> set[str]:
        return {tensor.name for form in self.forms for tensor in form.tensors}

    def form(self, name: str) -> Form:
        for form in self.forms:
            if form.name == name:
                return form
        raise KeyError(f"{self.id} has no form {name!r}; it has {', '.join(form.name for form in self.forms)}")

    def base_dims(self) -> dict[str, int]:
        return {name: dim.base for name, dim in self.dims.items()}

    def naive_dims(self) -> dict[str, int]:
        return {name: dim.base if dim.naive is None else dim.naive for name, dim in self.dims.items()}


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Outputs as a tuple: what a function returned, one tensor or several."""
    return tuple(result) if isinstance(result, Sequence) else (result,)
