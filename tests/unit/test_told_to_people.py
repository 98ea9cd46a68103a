"""What commands tell people: cases in words, headings whole, what takes time, where a rescored run goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentloop import rescoring, session
from agentloop.cli import app
from agentloop.report.counterexample import counterexample_lines
from agentloop.store import Store
from tests.browser.folders import write_run
from tests.helpers.command import main

EXAMPLE = {
    "case": {"task": "ops/x", "form": "rank2", "dims": {"M": 2, "N": 3}, "dtype": "float16", "layout": "transposed",
             "regime": "zeros", "keywords": {"eps": 0.5}, "tier": "layouts", "seed": 3},
    "inputs": {"x": {"shape": [2, 1], "dtype": "float16", "strides": [1, 2], "values": [0.5, "nan"]}},
    "got": [{"shape": [2000], "dtype": "float16", "values": None, "worst": [{"index": [7], "got": 1.0}]}],
    "expected": [{"shape": [2000], "dtype": "float16", "values": None, "worst": [{"index": [7], "expected": 2.0}]}],
    "stats": {"exceeding": 1, "judged": 2000},
    "diagnosis": "only the last block is wrong.",
}  # fmt: skip


def test_a_counterexample_is_told_in_words() -> None:
    assert list(counterexample_lines(EXAMPLE)) == [
        "case: form rank2; sizes M=2, N=3; float16; layout transposed; values zeros (all zero); keywords eps=0.5; "
        "tier layouts",
        "input: x float16 [2, 1] with strides [1, 2]: [[0.5], [nan]]",
        "got: float16 [2000]: too large to show",
        "expected: float16 [2000]: too large to show",
        "worst element: [7]: returned 1, expected 2",
        "errors: 1 of 2000 elements beyond the tolerance",
        "pattern: only the last block is wrong",
    ]
    alike = {"x": {"shape": [1, 2000], "dtype": "float32", "strides": [2000, 1], "values": None, "constant": 0.0}}
    assert "input: x float32 [1, 2000]: every element is 0" in list(counterexample_lines(EXAMPLE | {"inputs": alike}))
    shrunk = EXAMPLE | {"case": {**EXAMPLE["case"], "values": {"x": [0.5, "nan"]}}}  # type: ignore[dict-item]
    assert "values shrunk" in next(counterexample_lines(shrunk))
    assert next(counterexample_lines({"case": {}})).startswith("case: ")


def test_show_neither_cuts_a_heading_nor_prints_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    run = write_run(tmp_path / "r", 4)
    attempts = [json.loads(line) for line in (run / "attempts.jsonl").read_text().splitlines()]
    failed = next(a for a in attempts if a["score"] and a["score"].get("counterexample"))
    shown = CliRunner().invoke(app, ["show", str(run), failed["attempt_id"]])
    assert shown.exit_code == 0, shown.output
    heading = f"{failed['attempt_id']}: {failed['status_stated']} over stated tiers, {failed['status']} over all"
    assert heading in shown.output.splitlines()[0]
    assert "case: " in shown.output
    assert '{"' not in shown.output


@pytest.mark.parametrize("rescored", [False, True])
def test_a_run_in_use_says_so_before_anything_slow_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rescored: bool
) -> None:
    run = write_run(tmp_path / "r", 2)
    if rescored:
        config = json.loads((run / "config.json").read_text())
        config["rescored"] = {"run": str(write_run(tmp_path / "before", 2)), "changes": {}, "command": "x"}
        (run / "config.json").write_text(json.dumps(config))

    def slow(*_: Any, **__: Any) -> Any:
        raise AssertionError("started")

    for module in (session, rescoring):
        monkeypatch.setattr(module, "load_tasks", slow)
        monkeypatch.setattr(module, "open_backend", slow)
    with Store.open(run):
        assert main("resume", str(run)) == 2
    assert "is in use by process" in capsys.readouterr().err


def test_help_speaks_to_users() -> None:
    general = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    assert "agentloop run --model offline" in general
    assert "agentloop.commands" not in general
    assert "RUN-rescored" in CliRunner().invoke(app, ["rescore", "--help"], env={"COLUMNS": "200"}).output
