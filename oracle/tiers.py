"""Which tier a case belongs to: it follows from what the case changes from the base case."""

from __future__ import annotations

import ast
from functools import cache

from oracle.case import Case
from oracle.inputs import resolve_keywords, same_json
from oracle.schema import FULL_TIERS, Form, Task, parsed_entry


def base_case(task: Task, seed: int = 0, stream: str = "score") -> Case:
    """The plain case: first form, base dims, float32 (or the task's first dtype), contiguous, uniform, default keywords."""
    dtype = "float32" if "float32" in task.dtypes else task.dtypes[0]
    return Case(task.id, task.forms[0].name, task.base_dims(), dtype, seed=seed, stream=stream)


def changes(task: Task, case: Case) -> list[str]:
    """The tiers of what a case changes from the base case, one entry for each thing changed (each dim of its own)."""
    base = base_case(task)
    form = task.form(case.form)
    found = [form.tier] if case.form != base.form else []
    for name in used_dims(task, form):
        if case.dims[name] != base.dims[name]:
            found.append("shapes" if case.dims[name] else "empty")
    found += ["dtypes"] * (case.dtype != base.dtype)
    found += ["values"] * (case.regime != base.regime)
    found += ["layouts"] * (case.layout != base.layout)
    plain = resolve_keywords(task, form, {})
    found += ["keywords" for name, value in case.keywords.items() if not same_json(value, plain[name])]
    return found


def tier_of(task: Task, case: Case) -> str:
    """The latest tier among a case's changes; `base` if there are none."""
    return max(changes(task, case), key=FULL_TIERS.index, default="base")


def used_dims(task: Task, form: Form) -> list[str]:
    """Names of the dims that a form's shapes are made of, in the task's order."""
    entries = [entry for tensor in form.tensors for entry in tensor.shape if isinstance(entry, str)]
    names = {name for entry in entries for name in entry_dims(entry)}
    return [name for name in task.dims if name in names]


@cache
def entry_dims(entry: str) -> frozenset[str]:
    """Names of the dims in a shape entry."""
    return frozenset(node.id for node in ast.walk(parsed_entry(entry)) if isinstance(node, ast.Name))
