"""Sums of 1024 and more terms kept in half precision: the tolerance must refuse them.

Measured in two ways. *Emulated*, for any task: its own float64 reference is computed again with every long sum in it
rounded to the half type after each `LANES` terms, all else as exact as before, and the result compared as a candidate's.
*Real*, where the corpus has right kernels of the task that keep an accumulator: the same kernels with it rounded.
A sum counts wherever it is: one over columns of a fixed width too, not only over the dim in `reduces`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from oracle.case import Case
from oracle.compare import compare
from oracle.corpus import right_kernels
from oracle.corpus.mutate import Mutant, mutants
from oracle.dtypes import torch_dtype
from oracle.inputs import Inputs
from oracle.reference import Expected
from oracle.scale import LANES
from oracle.schema import Task
from oracle.syntax import parse
from oracle.task_check.soundness import as_outcome
from oracle.tolerance import policy

TERMS = 1024  # the fewest terms of a sum that must not be kept in half precision
MUTATION = "accumulator_rounded"


def half_of(dtype: str) -> str:
    """The half type that a kernel would accumulate a case of `dtype` in."""
    return "bfloat16" if dtype == "bfloat16" else "float16"


# --- emulated -------------------------------------------------------------------------------------------------------


def emulated(task: Task, inputs: Inputs, expected: Expected) -> str | None:
    """Failure kind of the reference with its long sums in half precision, "" if it passes; None where it has none."""
    args, kwargs = inputs.arguments64()
    with torch.no_grad(), InHalf(torch_dtype(half_of(inputs.case.dtype))) as sums:
        result = task.reference(*args, **kwargs)
    if not sums.count:
        return None
    outcome = as_outcome(inputs, args, kwargs, result, [quantity.dtype for quantity in expected.outputs])
    return compare(expected, outcome, task, inputs, policy()).kind or ""


class InHalf(TorchDispatchMode):
    """PyTorch with sums of at least `TERMS` floating terms rounded to `half` on the way; `count` of them were met."""

    def __init__(self, half: torch.dtype) -> None:
        super().__init__()
        self.half, self.count = half, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = RULES.get(func.overloadpacket.__name__)
        floating = args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point()
        answer = rule(self, *args, **(kwargs or {})) if rule and floating else None
        return func(*args, **(kwargs or {})) if answer is None else answer

    def rounded(self, total: torch.Tensor) -> torch.Tensor:
        return total.to(self.half).double()

    def total(self, x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
        """Sum over `dim` (None or empty: all), exact below `TERMS` terms."""
        over = sorted(d % x.ndim for d in _dims(x, dim))
        rows = x.permute(*(d for d in range(x.ndim) if d not in over), *over).flatten(x.ndim - len(over))
        total = self.running(rows)[..., -1] if self.long(rows.shape[-1]) else rows.sum(-1)
        return total.reshape([1 if d in over else n for d, n in enumerate(x.shape)]) if keepdim else total

    def running(self, x: torch.Tensor) -> torch.Tensor:
        """Running sum of the last dim at the end of each `LANES` terms, rounded there."""
        parts = torch.nn.functional.pad(x, (0, -x.shape[-1] % LANES)).unflatten(-1, (-1, LANES)).sum(-1)
        sums = [self.rounded(parts[..., 0])]
        for place in range(1, parts.shape[-1]):
            sums.append(self.rounded(sums[-1] + parts[..., place]))
        return torch.stack(sums, -1)

    def product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
        """a @ b over blocks of `LANES`; None where the product is short."""
        depth = a.shape[-1]
        if not self.long(depth):
            return None
        total = torch.zeros((), dtype=a.dtype)
        for start in range(0, depth, LANES):
            left, right = a[..., start : start + LANES], b[..., start : start + LANES, :]
            total = self.rounded(total + torch.matmul(left, right))
        return total

    def long(self, terms: int) -> bool:
        self.count += terms >= TERMS
        return terms >= TERMS


def _dims(x: torch.Tensor, dim: Any) -> Sequence[int]:
    given = [dim] if isinstance(dim, int) else list(dim or ())
    return given or range(x.ndim)


def _terms(x: torch.Tensor, dim: Any) -> int:
    count = 1
    for d in _dims(x, dim):
        count *= x.shape[d]
    return count


def _sum(mode: InHalf, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> torch.Tensor | None:
    return mode.total(x, dim, keepdim) if _terms(x, dim) >= TERMS else None


def _mean(mode: InHalf, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> torch.Tensor | None:
    return mode.total(x, dim, keepdim) / _terms(x, dim) if _terms(x, dim) >= TERMS else None


def _var(
    mode: InHalf, x: torch.Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False, **_: Any
) -> torch.Tensor | None:
    terms = _terms(x, dim)
    if terms < TERMS:
        return None
    mean = mode.total(x, dim, True) / terms
    return mode.total((x - mean).square(), dim, keepdim) / (terms - (1 if correction is None else float(correction)))


def _std(mode: InHalf, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    variance = _var(mode, *args, **kwargs)
    return None if variance is None else variance.sqrt()


def _exponentials(mode: InHalf, x: torch.Tensor, dim: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The row's maximum, the exponentials less it, and their sum; dims kept."""
    peak = x.amax(tuple(_dims(x, dim)), keepdim=True)
    peak = torch.where(torch.isinf(peak) & (peak < 0), 0.0, peak)
    e = torch.exp(x - peak)
    return peak, e, mode.total(e, dim, True)


def _softmax(mode: InHalf, x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor | None:
    if _terms(x, dim) < TERMS:
        return None
    e, total = _exponentials(mode, x, dim)[1:]
    return e / total


def _log_softmax(mode: InHalf, x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor | None:
    if _terms(x, dim) < TERMS:
        return None
    peak, total = _exponentials(mode, x, dim)[::2]
    return x - peak - total.log()


def _logsumexp(mode: InHalf, x: torch.Tensor, dim: Any, keepdim: bool = False) -> torch.Tensor | None:
    if _terms(x, dim) < TERMS:
        return None
    peak, _, total = _exponentials(mode, x, dim)
    result = peak + total.log()
    return result if keepdim else result.squeeze(tuple(_dims(x, dim)))


def _vector_norm(
    mode: InHalf, x: torch.Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, **_: Any
) -> torch.Tensor | None:
    if _terms(x, dim) < TERMS or ord in (0, float("inf"), float("-inf")):
        return None
    return mode.total(x.abs() ** ord, dim, keepdim) ** (1 / ord)


def _layer_norm(
    mode: InHalf, x: torch.Tensor, shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...] | None:
    over = tuple(range(-len(shape), 0))
    terms = _terms(x, over)
    if terms < TERMS:
        return None
    mean = mode.total(x, over, True) / terms
    inverse = torch.rsqrt(mode.total((x - mean).square(), over, True) / terms + eps)
    return _affine((x - mean) * inverse, weight, bias), mean, inverse


def _group_norm(
    mode: InHalf, x: torch.Tensor, weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, eps: float
) -> tuple[torch.Tensor, ...] | None:
    terms = c // groups * hw
    found = _layer_norm(mode, x.reshape(n, groups, terms), [terms], None, None, eps)
    if found is None:
        return None
    channels = (1, c, *([1] * (x.ndim - 2)))
    factors = (None if factor is None else factor.reshape(channels) for factor in (weight, bias))
    return _affine(found[0].reshape(x.shape), *factors), found[1], found[2]


def _affine(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _product(mode: InHalf, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    if b.ndim > 1:
        return mode.product(a, b)
    found = mode.product(a if a.ndim > 1 else a[None], b[:, None])  # mv and dot
    return None if found is None else found[..., 0] if a.ndim > 1 else found[0, 0]


def _added(
    mode: InHalf, shift: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor | None:
    found = _product(mode, a, b)
    return None if found is None else (beta * shift if beta else 0) + alpha * found


def _cumsum(mode: InHalf, x: torch.Tensor, dim: int, **_: Any) -> torch.Tensor | None:
    n = x.shape[dim] if x.ndim else 1
    if not mode.long(n):
        return None
    rows = x.movedim(dim, -1)
    carry = torch.nn.functional.pad(mode.running(rows)[..., :-1], (1, 0))
    parts = torch.nn.functional.pad(rows, (0, -n % LANES)).unflatten(-1, (-1, LANES)).cumsum(-1)
    return (parts + carry[..., None]).flatten(-2)[..., :n].movedim(-1, dim)


RULES: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "linalg_vector_norm": _vector_norm,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "mm": _product,
    "bmm": _product,
    "mv": _product,
    "dot": _product,
    "addmm": _added,
    "baddbmm": _added,
    "addmv": _added,
    "cumsum": _cumsum,
}


# --- real -----------------------------------------------------------------------------------------------------------


def kernels_in_half(task: Task) -> Iterator[tuple[str, Mutant]]:
    """The corpus' right kernels of a task, each with one accumulator rounded: (half type, mutant)."""
    for kernel in right_kernels(task.id):
        plain = ast.unparse(parse(kernel.source))
        for mutant in mutants(kernel.source):
            if mutant.operator == MUTATION:
                bfloat = mutant.source.count("tl.bfloat16") > plain.count("tl.bfloat16")
                yield "bfloat16" if bfloat else "float16", mutant


# --- cases ----------------------------------------------------------------------------------------------------------


def long_cases(task: Task, cases: Sequence[Case], dtype: str) -> list[Case]:
    """Cases of a dtype whose reduced dim, by the task's own account, has at least `TERMS` elements."""
    return [case for case in cases if case.dtype == dtype and task.reduces and case.dims[task.reduces] >= TERMS]


def beyond_portfolio(task: Task, dtype: str) -> list[Case]:
    """Where the portfolio has no long case (it would be too large for every candidate): the smallest one that there is."""
    sizes = [size for size in task.dims[task.reduces].values if size >= TERMS] if task.reduces else []
    if not task.reduces or not sizes:
        return []
    dims = {name: min((*dim.values, dim.base)) for name, dim in task.dims.items()} | {task.reduces: min(sizes)}
    return [Case(task.id, task.forms[0].name, dims, dtype, tier="shapes")]
