"""Where a result is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.diagnose.view import View

BLOCK = 16  # smallest power of two that is taken for a kernel's block
DENSE = 0.9  # share of a region that must be wrong for the region to be named
FEW, ENOUGH = 4, 16  # elements on either side, and in all, for a threshold to be no chance


def tail(view: View) -> str | None:
    """Only the end of one axis: past a block's boundary, or past some index."""
    for axis, lines in _lines(view):
        first, size = int(lines.argmax()), lines.size
        if first == 0 or not _dense(view, axis, slice(first, None)):
            continue
        block = first & -first
        if first == 1 and size > 2:
            return f"only index 0 of {view.dim(axis)} is right"
        if block >= BLOCK and size - first < block:
            return f"only the last partial block of {view.dim(axis)} is wrong (index ≥ {first} of {size})"
        return f"only index ≥ {first} of {view.dim(axis)} is wrong (size {size})"
    return None


def head(view: View) -> str | None:
    """Only the start of one axis."""
    for axis, lines in _lines(view):
        last, size = lines.size - 1 - int(lines[::-1].argmax()), lines.size
        if last < size - 1 and _dense(view, axis, slice(None, last + 1)):
            end = "index 0" if last == 0 else f"index ≤ {last}"
            return f"only {end} of {view.dim(axis)} is wrong (size {size})"
    return None


def every_nth(view: View) -> str | None:
    """Only every n-th index of one axis."""
    for axis, lines in _lines(view):
        places = np.flatnonzero(lines)
        steps = set(np.diff(places).tolist())
        if len(places) < 3 or len(steps) != 1:
            continue
        step = steps.pop()
        if step > 1 and places[0] < step and places[-1] + step >= lines.size and _dense(view, axis, places):
            return f"only every {_ordinal(step)} index of {view.dim(axis)} is wrong, from {places[0]} on"
    return None


def triangle(view: View) -> str | None:
    """Only above or below the diagonal of the last two axes."""
    if len(view.shape) < 2 or min(view.shape[-2:]) < 3:
        return None
    rows, columns = np.indices(view.shape[-2:])
    sides = {
        "above": columns > rows,
        "on and above": columns >= rows,
        "below": columns < rows,
        "on and below": columns <= rows,
    }
    for name, side in sides.items():
        region = view.quantity.judged & side
        if region.any() and (view.wrong == region).all():
            return f"only what lies {name} the diagonal of the last two dims is wrong"
    return None


def masked(view: View) -> str | None:
    """Only where a bool argument is False (or True)."""
    for buffer in view.inputs.tensors:
        if buffer.dtype != "bool" or buffer.shape != view.shape:
            continue
        mask = np.ascontiguousarray(buffer.values())
        for value, side in (("False", ~mask), ("True", mask)):
            region = view.quantity.judged & side
            if 0 < region.sum() < view.quantity.judged.sum() and (view.wrong == region).all():
                return f"only where {buffer.name} is {value} is it wrong"
    return None


def nonfinite_input(view: View) -> str | None:
    """Only at, or in rows with, a NaN or an infinity of an input."""
    for name, values in _same_shape(view):
        for label, hit in (
            ("NaN", np.isnan(values)),
            ("an infinity", np.isinf(values)),
            ("NaN or infinity", ~np.isfinite(values)),
        ):
            if not hit.any() or hit.all():
                continue
            if not (view.wrong & ~hit).any():
                return f"only where {name} is {label} is it wrong"
            rows = np.broadcast_to(hit.any(-1, keepdims=True), hit.shape) if hit.ndim else hit
            if not rows.all() and not (view.wrong & ~rows).any():
                return f"only rows in which {name} has {label} are wrong"
    return None


def threshold(view: View) -> str | None:
    """Only where an input is above or below some value."""
    judged, wrong = view.quantity.judged, view.wrong
    right = judged & ~wrong
    if wrong.sum() < FEW or right.sum() < FEW or judged.sum() < ENOUGH:
        return None
    for name, values in _same_shape(view):
        for label, size in ((name, values), (f"|{name}|", np.abs(values))):
            bad, good = size[wrong], size[right]
            if not (np.isfinite(bad).all() and np.isfinite(good).all()):
                continue
            if bad.min() > good.max():
                return f"only where {label} ≥ {bad.min():.6g} is it wrong (right up to {good.max():.6g})"
            if bad.max() < good.min():
                return f"only where {label} ≤ {bad.max():.6g} is it wrong (right from {good.min():.6g})"
    return None


# An input's NaN or a mask explains more than an index does.
PATTERNS: tuple[Callable[[View], str | None], ...] = (
    nonfinite_input, masked, triangle, every_nth, tail, head, threshold,
)  # fmt: skip


def _lines(view: View):
    """(axis, bool per index of the axis: something is wrong there), last axis first; only axes partly wrong."""
    for axis in reversed(range(len(view.shape))):
        lines = view.wrong.any(axis=tuple(other for other in range(len(view.shape)) if other != axis))
        if lines.size > 1 and not lines.all():
            yield axis, lines


def _dense(view: View, axis: int, region: slice | np.ndarray) -> bool:
    """Most judged elements of the region are wrong, and something outside it is judged and right."""
    chosen = np.zeros(view.shape[axis], dtype=bool)
    chosen[region] = True
    inside = chosen.reshape([-1 if other == axis else 1 for other in range(len(view.shape))])
    judged = view.quantity.judged
    count = (judged & inside).sum()
    return bool((judged & ~inside).any() and count and view.wrong.sum() >= DENSE * count)


def _same_shape(view: View):
    """(name, float64 values) of the float inputs in the output's shape."""
    for buffer in view.inputs.tensors:
        if buffer.shape == view.shape and buffer.dtype in ("float32", "float16", "bfloat16", "float64"):
            yield buffer.name, buffer.values().astype(np.float64)


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third", 4: "fourth"}.get(number, f"{number}th")
