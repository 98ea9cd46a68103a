"""What stands in the place of the reference: relations of the wrong elements to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.diagnose.view import View
from oracle.poison import poisoned

SEVERAL = 3  # different values that must agree before an arbitrary factor or offset is believed
PRECISION = 2.0**-7  # largest error, relative to the largest value, that is called lost precision

NAMED_FACTORS = {2.0: "2 times", 0.5: "half", 4.0: "4 times", 0.25: "a quarter of", np.log2(np.e): "log2(e) times",
                 np.log(2.0): "ln(2) times"}  # fmt: skip


def unwritten(view: View) -> str | None:
    if poisoned(view.raw, view.quantity.dtype)[view.wrong].all():
        return "what the memory held before: never written"
    return None


def zero(view: View) -> str | None:
    return "0" if (view.got[view.wrong] == 0).all() else None


def nonfinite(view: View) -> str | None:
    values = view.got[view.wrong]
    if np.isnan(values).all():
        return "NaN"
    return "infinite" if np.isinf(values).all() else None


def flipped(view: View) -> str | None:
    return "the reference with its sign flipped" if _no_chance(view) and view.matches(-view.want) else None


def _no_chance(view: View) -> bool:
    """All elements, or several of different size: a few ±1 that are wrong among others may agree by chance."""
    return view.all_wrong or np.unique(np.abs(view.want[view.wrong])).size >= SEVERAL


def named_multiple(view: View) -> str | None:
    """A well-known factor, a size or its root."""
    if not (_no_chance(view) and np.isfinite(view.want[view.wrong]).all()):
        return None
    factors = dict(NAMED_FACTORS)
    for name, size in view.inputs.case.dims.items():
        if size > 1:
            named = {size: name, 1 / size: f"1/{name}", size**0.5: f"√{name}", size**-0.5: f"1/√{name}"}
            factors |= {value: f"{text} ({value:.6g}) times" for value, text in named.items() if value not in factors}
    for factor, text in factors.items():
        if view.matches(factor * view.want):
            return f"{text} the reference"
    return None


def multiple(view: View) -> str | None:
    """Any factor that several different values share."""
    got, want = view.got[view.wrong], view.want[view.wrong]
    if np.unique(want).size < SEVERAL or not (np.isfinite(got) & np.isfinite(want)).all():
        return None
    largest = np.abs(want).argmax()
    factor = got[largest] / want[largest] if want[largest] else 0.0
    return f"{factor:.6g} times the reference" if factor and view.matches(factor * view.want) else None


def offset(view: View) -> str | None:
    got, want = view.got[view.wrong], view.want[view.wrong]
    if np.unique(want).size < SEVERAL or not (np.isfinite(got) & np.isfinite(want)).all():
        return None
    off = float(np.median(got - want))
    small = np.abs(off) < 8 * np.abs(view.tolerance.bounds(view.task, view.inputs, view.quantity)[view.wrong]).max()
    return (
        None
        if small or not view.matches(view.want + off)
        else f"the reference {'+' if off > 0 else '−'} {abs(off):.6g}"
    )


def row_zero(view: View) -> str | None:
    """Every row holds what row 0 should."""
    if len(view.shape) < 2 or view.shape[-1] < 2:
        return None
    rows = view.want.reshape(-1, view.shape[-1])
    if rows.shape[0] < 2:
        return None
    return "what row 0 should be" if view.matches(np.broadcast_to(rows[:1], rows.shape).reshape(view.shape)) else None


def rearranged(view: View) -> str | None:
    """The right values in other places, all of them: transposed, reversed, shifted."""
    if view.want.size < 2 or np.unique(view.want).size < SEVERAL:
        return None
    everywhere = view.quantity.judged
    if len(view.shape) >= 2 and view.matches(view.want.swapaxes(-1, -2).reshape(view.shape), everywhere):
        return "in the order of the transposed reference"
    for axis in reversed(range(len(view.shape))):
        if view.matches(np.flip(view.want, axis), everywhere):
            return f"the reference reversed along {view.dim(axis)}"
        for shift in (1, -1):
            if view.matches(np.roll(view.want, shift, axis), everywhere):
                return f"the reference shifted by {shift:+d} along {view.dim(axis)}"
    return None


def constant(view: View) -> str | None:
    """One value in place of several different ones."""
    values = view.got[view.wrong]
    if values.size < SEVERAL or np.unique(view.want[view.wrong]).size < SEVERAL or np.unique(values).size != 1:
        return None
    return f"the same value, {values[0]:.6g}"


def precision(view: View) -> str | None:
    """Right but for the last bits of the largest values."""
    got, want = view.got[view.wrong], view.want[view.wrong]
    finite = np.abs(view.want[np.isfinite(view.want)])
    if not finite.size or not finite.max():
        return None
    worst = float(np.max(np.abs(got - want)) / finite.max()) if np.isfinite(got).all() else np.inf
    if not 0 < worst <= PRECISION:
        return None
    return f"nearly right: off by at most 2^{int(np.ceil(np.log2(worst)))} of the largest value"


PATTERNS: tuple[Callable[[View], str | None], ...] = (
    unwritten, zero, nonfinite, flipped, named_multiple, row_zero, rearranged,
)  # fmt: skip

# True of many faults: asked only where nothing more telling holds.
VAGUE: tuple[Callable[[View], str | None], ...] = (multiple, constant, offset, precision)
