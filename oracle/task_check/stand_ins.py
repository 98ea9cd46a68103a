"""Answers that know nothing of the operator, as Triton sources: zeros, a constant, a copy of an input.

A task that accepts one says nothing about a candidate (KernelBench#165: zeros pass 4 of its 60 problems). To be refused
for its values alone, a stand-in gets all else right: it holds a table of the calls that it will meet, with the shape and
dtype of every result, and writes each by a kernel that it launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.inputs import decode
from oracle.schema import Task
from oracle.worker.protocol import Call, TensorBuffer

ZERO, ONE, MEAN, COPY = "zero", "one", "mean", "copy"
KINDS = {
    ZERO: "zeros",
    ONE: "ones",
    MEAN: "one number, the mean of the right answer to the first call",
    COPY: "a copy of the first input of the result's shape and dtype",
}

Fill = float | str  # a number, or the place of an argument to copy: "0" or a keyword's name
NUMBERS = {ZERO: 0.0, ONE: 1.0}


@dataclass(frozen=True)
class Result:
    """One tensor that a call must give: a returned one or, with its `place`, an argument that it must change."""

    values: np.ndarray
    dtype: str
    place: str = ""


@dataclass(frozen=True)
class Known:
    """One call and what it must give. `structure` as of `oracle.reference.Expected`."""

    call: Call
    structure: str
    results: tuple[Result, ...]

    @property
    def key(self) -> str:
        """What the table knows the call by: shapes, dtypes and the other arguments (as `TEMPLATE` has it)."""
        return repr([(place, _about(argument)) for place, argument in arguments(self.call)])

    def fills(self, kind: str, first: Known) -> list[Fill]:
        """What the stand-in writes as each result; `first` is the call that it knows more of."""
        if kind == COPY:
            return [self.fitting(result) or 0.0 for result in self.results]
        means = [_mean(result.values) for result in first.results]
        return [
            means[min(index, len(means) - 1)] if kind == MEAN else NUMBERS[kind] for index in range(len(self.results))
        ]

    def fitting(self, result: Result) -> str | None:
        """The first argument that could be taken for the result; one that must be changed is none."""
        changed = {other.place for other in self.results}
        for place, argument in arguments(self.call):
            if place in changed or not isinstance(argument, TensorBuffer):
                continue
            if (argument.shape, argument.dtype) == (result.values.shape, result.dtype):
                return place
        return None

    def right(self, fills: list[Fill]) -> bool:
        """Whether the answer is exactly what is asked for."""
        given = dict(arguments(self.call))
        return all(
            np.array_equal(
                result.values,
                given[fill].values().astype(np.float64)
                if isinstance(fill, str)
                else np.full(result.values.shape, fill),
                equal_nan=result.values.dtype.kind == "f",
            )
            for result, fill in zip(self.results, fills, strict=True)
        )


def arguments(call: Call) -> Iterator[tuple[str, Any]]:
    """Every argument of a call by its place: "0", "1", …, then keywords by name."""
    yield from ((str(index), argument) for index, argument in enumerate(call.positional))
    yield from sorted(call.keyword.items())


def inapplicable(kind: str, known: list[Known]) -> str:
    """Why a stand-in says nothing of a task, or "". The first known call is the base case."""
    if kind == COPY and not any(known[0].fitting(result) for result in known[0].results):
        return "no input has the result's shape and dtype"
    if all(call.right(call.fills(kind, known[0])) for call in known):
        return "this is what the contract asks for"
    return ""


def source(task: Task, kind: str, known: Sequence[Known]) -> str:
    """The stand-in's file. Calls that look alike (same shapes, other values) have one entry in the table."""
    table: dict[str, Any] = {}
    for call in known:
        fills = list(zip(call.results, call.fills(kind, known[0]), strict=True))
        returned = [(r.values.shape, r.dtype, fill) for r, fill in fills if not r.place]
        changed = [(r.place, fill) for r, fill in fills if r.place]
        table.setdefault(call.key, (call.structure, returned, changed))
    entries = "".join(f"    {key!r}: {entry!r},\n" for key, entry in table.items())
    return TEMPLATE.format(what=KINDS[kind], task=task.id, entry=task.entry, entries=entries)


def _about(argument: Any) -> Any:
    if isinstance(argument, TensorBuffer):
        return tuple(argument.shape), f"torch.{argument.dtype}"
    return repr(decode(argument))


def _mean(values: np.ndarray) -> float:
    """Mean of the finite values, within float32; 0 where there is none."""
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.clip(finite.mean(), -3e38, 3e38)) if finite.size else 0.0


TEMPLATE = '''"""{what}, for every call of {task} that it is judged with."""

import torch
import triton
import triton.language as tl

# call: (structure, [(shape, dtype, fill) of each result], [(place, fill) of each argument that changes]);
# a fill is a number, or the place of an argument to copy
CALLS = {{
{entries}}}
BLOCK = 1024


@triton.jit
def write(out_ptr, value, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros([BLOCK], tl.float32) + value, mask=at < n)


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0), mask=at < n)


def made(shape, dtype, fill, given, device):
    flags = dtype == torch.bool
    out = torch.empty(shape, dtype=torch.int8 if flags else dtype, device=device)
    grid = (triton.cdiv(out.numel(), BLOCK),)
    if out.numel() and isinstance(fill, str):
        x = given[fill].contiguous()
        copy[grid](x.view(torch.int8) if flags else x, out, out.numel(), BLOCK=BLOCK)
    elif out.numel():
        write[grid](out, float(fill), out.numel(), BLOCK=BLOCK)
    return out.view(torch.bool) if flags else out


def about(argument):
    return (tuple(argument.shape), str(argument.dtype)) if isinstance(argument, torch.Tensor) else repr(argument)


def {entry}(*args, **kwargs):
    given = {{str(index): argument for index, argument in enumerate(args)}} | dict(sorted(kwargs.items()))
    device = next(argument.device for argument in given.values() if isinstance(argument, torch.Tensor))
    structure, returned, changed = CALLS[repr([(place, about(argument)) for place, argument in given.items()])]
    results = tuple(made(shape, getattr(torch, dtype), fill, given, device) for shape, dtype, fill in returned)
    for place, fill in changed:
        given[place].copy_(made(given[place].shape, given[place].dtype, fill, given, device))
    return None if structure == "None" else results[0] if structure == "tensor" else results
'''
