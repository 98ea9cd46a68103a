"""Rounds: what is solved, mended and broken, and what independent samples reach for the same. Counted by hand."""

from __future__ import annotations

import pytest

from agentloop.outcomes import episodes
from agentloop.repairs import repair, stream_gap
from oracle.verdict import UNJUDGED
from tests.helpers.attempts import all_of, attempt, episode

ARM = "m · zero_shot · minimized"


def test_an_episode_that_stopped_keeps_its_answer_and_spends_no_more() -> None:
    found = repair(all_of(episode("+", task="ops/a"), episode("-+", task="ops/b"), episode("---", task="ops/c")))[ARM]
    by_round = [(row["value"], row["requests"], row["tokens"]) for row in found["solved_by_round"]]
    assert by_round == [
        (pytest.approx(1 / 3), 1, 100),
        (pytest.approx(2 / 3), pytest.approx(5 / 3), pytest.approx(500 / 3)),
        (pytest.approx(2 / 3), 2, 200),
    ]
    assert (found["episodes"], found["requests"]) == (3, 6)


def test_repairs_are_counted_by_the_kind_that_they_answer() -> None:
    found = repair(
        all_of(
            [
                attempt(False, kind="out_of_bounds"),
                attempt(False, round_=1, kind="compile_error"),
                attempt(True, round_=2),
            ],
            [attempt(False, kind="out_of_bounds", task="ops/b"), attempt(True, round_=1, task="ops/b")],
        )
    )[ARM]
    counts = {kind: (rate["fixed"], rate["of"]) for kind, rate in found["repair_rate"].items()}
    assert counts == {"out_of_bounds": (1, 2), "compile_error": (1, 1)}
    assert (found["repaired"]["fixed"], found["repaired"]["of"]) == (2, 3)
    assert found["repair_rate"]["out_of_bounds"]["rate"]["value"] == 0.5


def test_the_kind_is_that_of_the_stated_tiers() -> None:
    """A failure beyond the prompt, in an earlier tier, is not what the author is asked to mend."""
    first = attempt(False, failing="values", kind="nonfinite_mismatch", stated=("base", "values"))
    assert first.score is not None
    beyond = {"kind": "out_of_bounds", "tier": "shapes", "loud": False, "message": "", "detail": ""}
    first.score.failures["shapes"] = first.score.failures["shapes"] = beyond
    found = repair([first, attempt(True, round_=1, stated=("base", "values"))])[ARM]
    assert list(found["repair_rate"]) == ["nonfinite_mismatch"]


def test_what_could_not_be_judged_is_no_repair_and_no_regression() -> None:
    unjudged = attempt(True, round_=1, status_stated=UNJUDGED)
    found = repair([attempt(False), unjudged])[ARM]
    assert (found["repaired"]["fixed"], found["repaired"]["of"]) == (0, 1)
    found = repair([attempt(True, told=False), unjudged])[ARM]
    assert (found["regressions"]["broken"], found["regressions"]["of"]) == (0, 1)


def test_a_regression_is_right_before_and_wrong_after() -> None:
    found = repair(
        all_of(
            [attempt(True, told=False), attempt(False, round_=1), attempt(True, round_=2)],
            [attempt(True, told=False, task="ops/b"), attempt(True, round_=1, task="ops/b")],
        )
    )[ARM]
    assert (found["regressions"]["broken"], found["regressions"]["of"]) == (1, 2)


def test_the_gap_is_what_feedback_passes_beyond_the_score() -> None:
    gap = stream_gap(
        [
            attempt(False, told=True, task="ops/a"),
            attempt(True, told=True, task="ops/b"),
            attempt(True, told=False, task="ops/c"),
            attempt(False, told=True, task="ops/d"),
            attempt(False, task="ops/e", last=True),
            attempt(False, told=True, task="ops/f", rescored_from="another"),
        ]
    )
    assert (gap["judged_in_both"], gap["feedback_pass_score_fail"], gap["feedback_fail_score_pass"]) == (4, 2, 1)
    assert (gap["feedback_passes"]["value"], gap["score_passes"]["value"], gap["gap"]["value"]) == (0.75, 0.5, 0.25)
    assert gap["score_fails_given_feedback_passes"]["value"] == pytest.approx(2 / 3)


def test_the_gap_is_over_the_stated_tiers() -> None:
    gap = stream_gap([attempt(False, told=True, failing="layouts", stated=("base", "shapes"))])
    assert gap["feedback_pass_score_fail"] == 0


def independent(found: dict, at: str, round_: int) -> dict:
    row = found[ARM]["independent"][at][round_]
    return {key: row[key] for key in ("spent", "arm", "short", "ran_out")} | {
        "independent": row["independent"]["value"],
        "difference": row["difference"] and row["difference"]["value"],
    }


def test_at_equal_requests_the_baseline_is_arm_none() -> None:
    """The arm needs two requests where the baseline needs three; both tasks alike."""
    found = repair(all_of(*(episode("-+", task=t) for t in "ab"), *(episode("--+", task=t, arm="none") for t in "ab")))
    assert independent(found, "equal_requests", 1) == {
        "spent": 2, "arm": 1, "short": False, "ran_out": 0, "independent": 0, "difference": 1,
    }  # fmt: skip
    assert found["m · zero_shot · none"]["independent"] is None


def test_at_equal_tokens_dearer_prompts_buy_more_independent_samples() -> None:
    arm = all_of(*([attempt(False, task=t), attempt(True, round_=1, task=t, used=250)] for t in "ab"))
    found = repair(all_of(arm, *(episode("--+", task=t, arm="none") for t in "ab")))
    assert independent(found, "equal_requests", 1)["independent"] == 0
    tokens = independent(found, "equal_tokens", 1)  # 350 tokens buy the baseline its third answer
    assert (tokens["spent"], tokens["independent"], tokens["short"]) == (350, 1, True)


def test_between_two_answers_the_baseline_is_a_mixture() -> None:
    """3 requests for two tasks: on average 1.5, half the way from the baseline's first answer to its second."""
    found = repair(
        all_of(episode("+", task="a"), episode("-+", task="b"), *(episode("-+", task=t, arm="none") for t in "ab"))
    )
    assert independent(found, "equal_requests", 1)["independent"] == pytest.approx(0.5)


def test_an_episode_goes_on_with_the_next_samples_answers_and_says_where_they_end() -> None:
    """Without arm none: two samples give two independent first answers; a third is not there."""
    pattern = {0: "---", 1: "+"}
    found = repair(all_of(*(episode(p, task=t, sample=s) for t in "ab" for s, p in pattern.items())))
    rows = found[ARM]["independent"]["equal_requests"]
    assert [row["spent"] for row in rows] == [1, 1.5, 2]
    assert [row["independent"]["value"] for row in rows] == [0.5, 1.0, 1.0]  # sample 0 goes on with 1, which stops
    assert [row["short"] for row in rows] == [False, False, True]
    never = repair(all_of(*(episode("---", task=t, sample=s) for t in "ab" for s in (0, 1))))
    assert independent(never, "equal_requests", 2) == {
        "spent": 3, "arm": 0, "short": True, "ran_out": 0, "independent": 0, "difference": None,
    }  # fmt: skip


def test_independent_answers_that_stop_early_leave_some_without_more() -> None:
    found = repair(
        all_of(
            *(episode("---", task=t) for t in "ab"),
            episode("-+", task="a", arm="none"),
            episode("-", task="b", arm="none"),  # killed after its first answer
        )
    )
    row = independent(found, "equal_requests", 1)
    assert (row["short"], row["independent"], row["ran_out"]) == (True, 0.5, 0.5)


def test_tokens_that_no_one_told_are_not_made_up() -> None:
    found = repair(all_of(*(episode("-+", task=t, used=None) for t in "ab")))[ARM]
    assert found["independent"]["equal_tokens"] is None
    assert [row["tokens"] for row in found["solved_by_round"]] == [None, None]


def test_one_round_has_nothing_to_compare() -> None:
    assert repair(episode("+", rounds=1))[ARM]["independent"] is None


def test_an_episode_begins_with_its_first_round() -> None:
    assert episodes([attempt(True, round_=1)]) == {}
