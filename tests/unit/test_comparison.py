"""Conditions compared: paired over common tasks, adjusted, ties said."""

from __future__ import annotations

import pytest

from agentloop.comparison import Condition, across, compare, families, unlike
from agentloop.records import Attempt
from tests.helpers.attempts import all_of, attempt, episode

TASKS = [f"ops/{n}" for n in range(12)]


def solving(count: int, tasks: list[str] = TASKS, **fields: object) -> list[Attempt]:
    """One answer a task; the first `count` are right."""
    return [attempt(place < count, task=task, **fields) for place, task in enumerate(tasks)]  # type: ignore[arg-type]


def test_a_pair_is_counted_task_by_task() -> None:
    family = compare("run", [Condition.of("x", solving(9)), Condition.of("y", solving(3))], "last")
    (pair,) = family["pairs"]
    assert (pair["a"], pair["b"], pair["better"], pair["worse"], pair["tied"]) == ("x", "y", 6, 0, 6)
    assert pair["difference"]["value"] == 0.5
    assert pair["p"] == pair["p_holm"] == 2 / 2**6
    assert pair["ahead"] == "x"
    assert [(row["name"], row["value"]) for row in family["ranking"]] == [("x", 0.75), ("y", 0.25)]


def test_the_better_one_stands_first_whatever_the_order() -> None:
    family = compare("run", [Condition.of("y", solving(3)), Condition.of("x", solving(9))], "last")
    assert (family["pairs"][0]["a"], family["pairs"][0]["ahead"]) == ("x", "x")


def test_alike_conditions_are_not_told_apart() -> None:
    family = compare("run", [Condition.of("x", solving(5)), Condition.of("y", solving(5))], "last")
    (pair,) = family["pairs"]
    assert (pair["tied"], pair["p"], pair["ahead"]) == (12, 1.0, None)
    assert pair["difference"]["low"] < 0 < pair["difference"]["high"]
    assert family["few_tasks"]


def test_several_pairs_are_adjusted_together() -> None:
    """Six tasks of difference are a finding for one pair (p = 0.03) and none for three."""
    alone = compare("run", [Condition.of(n, solving(c)) for n, c in (("x", 9), ("y", 3))], "last")
    three = compare("run", [Condition.of(n, solving(c)) for n, c in (("x", 9), ("y", 3), ("z", 5))], "last")
    found = {(pair["a"], pair["b"]): pair for pair in three["pairs"]}
    assert alone["pairs"][0]["ahead"] == "x"
    assert found["x", "y"]["p"] == alone["pairs"][0]["p"]
    assert found["x", "y"]["p_holm"] == pytest.approx(3 * 2 / 2**6)
    assert found["x", "y"]["ahead"] is None


def test_samples_are_averaged_within_their_task() -> None:
    many = all_of(*(solving(6, sample=s) for s in range(4)))
    few = solving(6)
    (pair,) = compare("run", [Condition.of("x", many), Condition.of("y", few)], "last")["pairs"]
    assert (pair["tied"], pair["difference"]["value"]) == (12, 0.0)


def test_only_common_unchanged_tasks_over_common_tiers() -> None:
    one = solving(12, failing="layouts")
    two = [
        *solving(0, TASKS[:10], failing="layouts", stated=("base", "shapes")),
        attempt(False, task=TASKS[10], task_hash="changed", failing="shapes"),
    ]
    family = compare("run", [Condition.of("x", one), Condition.of("y", two)], "last")
    assert (family["tasks"], family["tasks_left_out"], family["tiers"]) == (10, 2, ["base", "shapes"])
    assert [row["value"] for row in family["ranking"]] == [1.0, 1.0]  # the layouts were not stated to both


def test_first_and_last_answers_are_different_measures() -> None:
    mended = all_of(*(episode("-+", task=task) for task in TASKS))
    broken = all_of(*(episode("--", task=task) for task in TASKS))
    conditions = [Condition.of("x", mended), Condition.of("y", broken)]
    assert compare("run", conditions, "first")["pairs"][0]["tied"] == 12
    assert compare("run", conditions, "last")["pairs"][0]["better"] == 12


def test_a_run_compares_its_arms_strategies_and_models() -> None:
    attempts = all_of(
        *(
            solving(n, model=model, strategy=strategy, arm=arm)
            for n, model in ((3, "p"), (6, "q"))
            for strategy in ("zero_shot", "one_shot")
            for arm in ("none", "error")
        )
    )
    found = [(f["axis"], f["of"], f["measure"], len(f["pairs"])) for f in families(attempts)]
    assert found == [
        ("feedback", "p · one_shot", "last", 1),
        ("feedback", "p · zero_shot", "last", 1),
        ("feedback", "q · one_shot", "last", 1),
        ("feedback", "q · zero_shot", "last", 1),
        ("prompt_strategy", "p", "first", 1),
        ("prompt_strategy", "q", "first", 1),
        ("model", "zero_shot", "first", 1),
        ("model", "one_shot", "first", 1),
    ]


def test_with_one_arm_models_are_compared_by_their_last_answers_too() -> None:
    attempts = all_of(*(episode("-+", task=t, model=m) for t in TASKS for m in ("p", "q")))
    assert [(f["axis"], f["measure"]) for f in families(attempts)] == [("model", "first"), ("model", "last")]


def test_one_condition_has_nothing_to_compare() -> None:
    assert families(solving(3)) == []


def test_runs_are_compared_condition_by_condition_where_they_share_some() -> None:
    one = all_of(solving(3, arm="none"), solving(6, arm="error"))
    two = solving(9, arm="error")
    found, left_out = across({"one": one, "two": two}, "last")
    assert [(f["of"], [row["name"] for row in f["ranking"]]) for f in found] == [
        ("m · zero_shot · error", ["two", "one"])
    ]
    assert left_out == ["one: m · zero_shot · none"]


def test_runs_that_share_no_condition_are_compared_as_they_are() -> None:
    found, left_out = across({"one": solving(3, model="p"), "two": solving(9, model="q")}, "last")
    assert [row["name"] for row in found[0]["ranking"]] == ["two", "one"]
    assert left_out == []


def test_verdicts_under_other_conditions_are_told() -> None:
    runs = {"one": solving(3), "two": solving(3, backend="cuda", tolerance="paper")}
    assert unlike(runs) == ["backend: one interpreter; two cuda", "tolerance: one derived; two paper"]
    assert unlike({"one": solving(3), "two": solving(9)}) == []


def test_nothing_in_common_is_no_comparison() -> None:
    other = solving(3, [f"seed/{n}" for n in range(4)])
    family = compare("run", [Condition.of("x", solving(3)), Condition.of("y", other)], "last")
    assert (family["tasks"], family["pairs"], family["tasks_left_out"]) == (0, [], 16)
