"""`report`, `show` and `compare` as a user types them, over run folders made to the point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentloop.records import Attempt
from tests.helpers.attempts import all_of, attempt, episode
from tests.helpers.command import main
from tests.helpers.made import make_run

TASKS = ["seed/relu", "seed/gelu", "seed/silu", "seed/tanh", "seed/elu"]


def sourced(attempts: list[Attempt]) -> list[tuple[Attempt, str]]:
    return [(one, f"# {one.attempt_id}\n") for one in attempts]


def solved(patterns: list[str], **fields: object) -> list[Attempt]:
    """An episode per task."""
    pairs = zip(TASKS, patterns, strict=False)
    return all_of(*(episode(p, task=t, rounds=2, **fields) for t, p in pairs))  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three of five tasks are solved, one of them at the second round; the last is right only beyond what counts."""
    return make_run(tmp_path / "r", sourced(solved(["+", "+", "-+", "--", "--"])), episodes=5)


@pytest.mark.parametrize(("bar", "code"), [("0", 0), ("0.6", 0), ("0.61", 1), ("1", 1)])
def test_a_bar_that_is_not_met_exits_1(run: Path, bar: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("report", str(run), "--fail-under", bar) == code
    assert ("below --fail-under" in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("bar", ["-0.1", "1.01", "60", "nan"])
def test_a_bar_is_a_share(run: Path, bar: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("report", str(run), f"--fail-under={bar}") == 2
    assert "--fail-under must be between 0 and 1" in capsys.readouterr().err


def test_the_bar_is_over_stated_tiers_and_the_score_stream(tmp_path: Path) -> None:
    beyond = attempt(False, task="seed/relu", failing="layouts", stated=("base", "shapes"), last=True)
    told = attempt(False, task="seed/gelu", told=True)
    path = make_run(tmp_path / "r", sourced([beyond, told]), episodes=2)
    assert main("report", str(path), "--fail-under", "0.5") == 0
    assert main("report", str(path), "--fail-under", "0.51") == 1


def test_what_is_not_answered_yet_is_not_solved(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", sourced(solved(["+"])), episodes=2)
    assert main("report", str(path), "--fail-under", "0.5") == 0
    assert main("report", str(path), "--fail-under", "0.9") == 1


def test_a_run_without_attempts_solves_nothing(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", [], episodes=3)
    assert main("report", str(path), "--fail-under", "0.1") == 1
    assert main("report", str(path)) == 0


def test_the_figures_hold_every_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempts = solved(["+", "-+", "--"]) + solved(["+", "--", "--"], arm="none")
    strict = attempt(True, task=TASKS[4], naive="fail", sample=0)
    path = make_run(tmp_path / "r", sourced([*attempts, strict]), episodes=7)
    assert main("report", str(path), "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((path / "summary.json").read_text())
    model = summary["models"]["m · zero_shot"]
    cell = model["disagreement"]["kernelbench"]["stated"]
    assert (cell["strict_naive"], cell["strict_naive_attempts"]) == (1, [strict.attempt_id])
    assert model["ability"]["stated"]["pass@1"]["few_tasks"]
    arm = summary["repair"]["m · zero_shot · minimized"]
    assert {"solved_by_round", "repaired", "repair_rate", "regressions", "stream_gap", "independent"} <= set(arm)
    assert [row["round"] for row in arm["independent"]["equal_requests"]] == [0, 1]
    (family,) = summary["comparison"]
    assert family["tasks_left_out"] == 1
    assert summary["episodes"] == {"begun": 7, "planned": 7}
    assert main("report", str(path)) == 0
    assert f"kernelbench fails what the oracle passes: {strict.attempt_id}" in capsys.readouterr().out


def test_pass_at_k_is_undefined_where_a_task_has_too_few_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = [attempt(s > 0, task=t, sample=s) for t in TASKS for s in range(2)]
    one_short = make_run(tmp_path / "a", sourced(attempts[:-1]))
    assert main("report", str(one_short), "--json") == 0
    ability = json.loads(capsys.readouterr().out)["models"]["m · zero_shot"]["ability"]["stated"]
    assert set(ability) == {"pass@1", "pass@2"}
    assert ability["pass@2"]["value"] is None
    assert "1 of 5 tasks have fewer than 2 samples" in ability["pass@2"]["method"]
    whole = make_run(tmp_path / "b", sourced(attempts))
    assert main("report", str(whole), "--json") == 0
    ability = json.loads(capsys.readouterr().out)["models"]["m · zero_shot"]["ability"]["stated"]
    assert (ability["pass@1"]["value"], ability["pass@2"]["value"]) == (0.5, 1.0)


def test_show_lists_episodes_and_tells_one(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("show", str(run)) == 0
    assert "m:zero_shot:minimized:seed/silu:0" in capsys.readouterr().out
    assert main("show", str(run), "seed/silu:0", "--texts") == 0
    told = capsys.readouterr().out
    assert told.index("silu:0:0") < told.index("silu:0:1")
    assert "numerical_mismatch: as made up" in told
    assert "please, seed/silu" in told
    assert "# m:zero_shot:minimized:seed/silu:0:1" in told
    assert main("show", str(run), "seed/nothing") == 2


def test_show_takes_an_exact_id_before_one_that_holds_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [attempt(True, task="seed/relu", sample=sample) for sample in (1, 10)]
    path = make_run(tmp_path / "r", sourced(rows))
    assert main("show", str(path), "m:zero_shot:minimized:seed/relu:1", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["sample"] == 1


def test_compare_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "one", sourced(solved(["+"] * 5, model="p")))
    make_run(tmp_path / "two", sourced(solved(["--"] * 4 + ["-+"], model="q", backend="cuda")))
    arguments = ["compare", "one", "two", "--runs-dir", str(tmp_path)]
    assert main(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (pair,) = found["families"][0]["pairs"]
    assert (pair["a"], pair["b"], pair["better"], pair["tied"]) == ("one", "two", 4, 1)
    assert pair["p"] == 2 / 2**4
    assert found["judged_unlike"] == ["backend: one interpreter; two cuda"]
    assert main(*arguments, "--answers", "first") == 0
    told = capsys.readouterr().out
    assert "one over two" in told
    assert "judged unlike: backend" in told
    assert "fewer than 30: only large differences show" in told


def test_compare_says_what_cannot_be_compared(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        capsys.readouterr()
        assert main("compare", *arguments) == 2
        return capsys.readouterr().err

    other = make_run(tmp_path / "other", sourced([attempt(True, task="seed/matmul")]))
    empty = make_run(tmp_path / "empty", [])
    assert "has one condition alone" in refused(str(run))
    assert "given twice" in refused(str(run), str(run))
    assert "nothing in common" in refused(str(run), str(other))
    assert "no attempt yet" in refused(str(run), str(empty))
    assert "--answers must be one of first, last" in refused(str(run), str(other), "--answers", "best")
    assert "no run 'x'" in refused("x", "y", "--runs-dir", str(tmp_path))
