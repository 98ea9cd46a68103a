"""What a counterexample shows of its inputs: all values where they are few, one where they are all the same."""

from __future__ import annotations

import pytest

from agentloop.content import load_tasks
from oracle.case import Case
from oracle.counterexample import VALUES_SHOWN, shown_inputs
from oracle.inputs import build


@pytest.mark.parametrize(("regime", "constant"), [("zeros", 0.0), ("normal", None)])
def test_an_input_too_large_to_show_is_told_where_it_is_one_value(regime: str, constant: float | None) -> None:
    task = load_tasks()["seed/relu"]
    dims = task.base_dims() | {name: 1 for name in task.base_dims()}
    small = shown_inputs(build(task, Case(task.id, task.forms[0].name, dims, "float32", regime=regime)))
    large = shown_inputs(build(task, Case(task.id, task.forms[0].name, task.base_dims(), "float32", regime=regime)))
    [few], [many] = small.values(), large.values()
    assert len(few["values"]) == 1 <= VALUES_SHOWN
    assert "constant" not in few
    assert many["values"] is None
    assert many.get("constant") == constant
