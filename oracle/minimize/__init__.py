"""Shrinking a failing case: deterministic, one small shrinker per axis, within a budget of executions and of time."""

from __future__ import annotations

from collections.abc import Callable

from oracle.case import Case
from oracle.errors import OracleError
from oracle.minimize.axes import Dtype, Form, Keywords, Layout, Regime
from oracle.minimize.base import Search, Shrinker
from oracle.minimize.dims import Dims
from oracle.minimize.trim import Trim
from oracle.minimize.values import Values
from oracle.schema import Task

BUDGET = 40  # executions, those of start and end included

# Dims early: smaller cases run faster.
REDRAWING: tuple[type[Shrinker], ...] = (Form, Dims, Dtype, Layout, Keywords, Regime)
# Then the values drawn last are kept: explicit ones fix every other axis. Sizes first: fewer values are left to simplify.
KEEPING: tuple[type[Shrinker], ...] = (Trim, Values, Trim)
PASSES = 2  # what one axis lost may let another shrink
RESERVED = 14  # executions that redrawing leaves for the values


class NotFailing(OracleError):
    """The case to shrink did not fail when it was run again."""


def minimize(
    case: Case,
    failing: Callable[[Case], object],
    *,
    task: Task,
    budget: int = BUDGET,
    seconds: float | None = None,
    verify: Callable[[Case], object] | None = None,
) -> Case:
    """The simplest case found for which `failing` is true.

    failing  runs a case: true if it fails as the original did. A case that it refuses with an OracleError passes.
    budget   the most calls of `failing` and `verify`, the checks of start and end included.
    seconds  nothing more is tried once they have passed (None: no limit). Only they can make two ends differ.
    verify   runs the end once more (default: `failing`).

    Raises NotFailing if `case` itself does not fail. Returns `case` if what was found does not fail once more.
    """
    search = Search(case, failing, budget - 1, seconds)
    if not search.start():
        raise NotFailing(f"the case of {task.id} does not fail when it is run again on its own")
    for _ in range(PASSES):
        before = search.best
        for shrinker in REDRAWING:
            search.run(shrinker(task), reserved=min(RESERVED, budget // 3))
        if search.best == before:
            break
    for shrinker in KEEPING:
        search.run(shrinker(task))
    if search.best == case and verify is None:
        return case
    return search.best if (verify or failing)(search.best) else case
