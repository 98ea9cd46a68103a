"""Shrinking a failing case: deterministic, one small shrinker per axis, within a budget of executions."""

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

# Dims early: smaller cases run faster. Explicit values (`Values`, `Trim`) come last: they fix every other axis.
SHRINKERS: tuple[type[Shrinker], ...] = (Form, Dims, Dtype, Layout, Keywords, Regime)
PASSES = 2  # what one axis lost may let another shrink


class NotFailing(OracleError):
    """The case to shrink did not fail when it was run again."""


def minimize(case: Case, failing: Callable[[Case], object], *, task: Task, budget: int = 40) -> Case:
    """The simplest case found for which `failing` is true.

    failing  runs a case: true if it fails as the original did. A case that it refuses with an OracleError passes.
    budget   the most calls of `failing`, the checks of start and end included.

    Raises NotFailing if `case` itself does not fail. Returns `case` if what was found does not fail once more.
    """
    search = Search(case, failing, budget - 1)
    if not search.start():
        raise NotFailing(f"the case of {task.id} does not fail when it is run again on its own")
    for _ in range(PASSES):
        before = search.best
        for shrinker in SHRINKERS:
            search.run(shrinker(task))
        if search.best == before:
            break
    for shrinker in (Values, Trim):
        search.run(shrinker(task))
    return search.best if search.best == case or failing(search.best) else case
