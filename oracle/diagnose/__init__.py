"""Diagnosis: the pattern of a wrong result in words, for whoever has to mend the kernel. Silent where none is known.

Two registries of small functions look at the first wrong output: `places` says where it is wrong, `relations` (and
`rewrites`, which run the reference on changed inputs) what stands there instead. What is said holds of the data.
"""

from __future__ import annotations

from oracle.compare import pairs, wrong_elements
from oracle.diagnose import places, relations, rewrites
from oracle.diagnose.view import View
from oracle.inputs import Inputs
from oracle.reference import Expected
from oracle.schema import Task
from oracle.tolerance import Policy, policy
from oracle.worker.protocol import Outcome


def diagnose(
    task: Task, inputs: Inputs, expected: Expected, outcome: Outcome, tolerance: Policy | None = None
) -> str | None:
    """One line on the first tensor that is wrong under `tolerance` (default: `derived`), or None."""
    tolerance = tolerance or policy()
    for quantity, got in pairs(expected, outcome, inputs):
        if got.shape != quantity.values.shape or quantity.index == "value" or not got.size:
            continue
        wrong = wrong_elements(got, quantity, tolerance.bounds(task, inputs, quantity))
        if wrong.any():
            return _words(View(task, inputs, quantity, got, wrong, tolerance))
    return None


def _words(view: View) -> str | None:
    place = next(filter(None, (pattern(view) for pattern in places.PATTERNS)), None)
    asked = (*rewrites.TELLING, *relations.PATTERNS, *rewrites.PATTERNS, *relations.VAGUE)
    relation = next(filter(None, (pattern(view) for pattern in asked)), None)
    if relation is None:
        return place
    if place:
        return f"{place}; the wrong elements are {relation}"
    return f"every {'' if view.all_wrong else 'wrong '}element is {relation}"
