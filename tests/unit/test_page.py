"""What a page packs and says, without a browser: nothing lost, nothing over the budget, commands that work."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentloop import report
from agentloop.cli import app
from agentloop.config import Settings
from agentloop.report import contents, words
from agentloop.report.page import render_page
from agentloop.scoring import load_attempts, summarize
from tests.browser.folders import write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "packed", 150)


def unpacked(data: str) -> Any:
    return json.loads(
        gzip.decompress(base64.b64decode(data)), parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
    )


def test_every_attempt_is_packed_once_with_all_its_texts(folder: Path) -> None:
    attempts = load_attempts(folder)
    packed = contents.pack(folder, {}, attempts, 10_000_000)
    index = unpacked(packed.index)["episodes"]
    assert sum(len(episode["rounds"]) for episode in index) == len(attempts)
    assert (packed.left_out, packed.shortened) == (0, False)
    found = {}
    for block in packed.blocks:
        data = unpacked(block.data)
        assert len(data["episodes"]) == block.count
        for place, rounds in enumerate(data["episodes"], block.first):
            for entry, detail in zip(index[place]["rounds"], rounds, strict=True):
                found[f"{index[place]['id']}:{entry['round']}"] = data["texts"][detail["source"]]
    assert found == {a.attempt_id: (folder / "candidates" / f"{a.candidate_id}.py").read_text() for a in attempts}


@pytest.mark.parametrize("budget", [400_000, 200_000, 60_000, 0])
def test_a_budget_is_kept_and_what_it_cost_is_told(folder: Path, budget: int) -> None:
    packed = contents.pack(folder, {}, load_attempts(folder), budget)
    size = sum(len(block.data) for block in packed.blocks)
    assert size + len(packed.index) <= max(budget, len(packed.index))
    index = unpacked(packed.index)["episodes"]
    assert packed.left_out == len(index) - sum(block.count for block in packed.blocks)
    assert packed.shortened
    assert packed.cuts == contents.LEVELS[-1] or packed.left_out == 0


def test_a_cut_page_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentloop.report.page.PAGE_LIMIT", 500_000)
    page = render_page(folder, summarize(folder), load_attempts(folder))
    assert len(page.encode()) <= 500_000
    assert "episodes of the list have no details in this page" in page


def test_an_absent_file_is_shown_as_absent(tmp_path: Path) -> None:
    run = write_run(tmp_path / "gone", 3)
    for kind in ("responses", "candidates"):
        for file in (run / kind).iterdir():
            file.unlink()
    _, page = report.write(run)
    assert "first answers" in page.read_text()


def test_the_command_to_repeat_a_run_means_the_same_run() -> None:
    given = Settings(
        model="m", base_url="http://localhost:8000/v1", tasks="seed/relu,ops/softmax", prompt_strategy="edge_cases",
        samples=2, rounds=4, temperature=0.1, extra_body={"top_k": 20}, seed=7, task_dirs=("a b", "c"), workers=5,
        name="old", allow_unsafe=True,
    )  # fmt: skip
    command = words.repeat_command(Path("runs/old"), {"settings": given.model_dump(mode="json")})
    assert command is not None
    said = shlex.split(command)
    assert said[:2] == ["agentloop", "run"]
    assert "--workers" not in said
    assert "old" not in said
    options = [said[at : at + 2] for at in range(2, len(said))]
    for pair in (["--extra-body", '{"top_k": 20}'], ["--task-dir", "a b"], ["--task-dir", "c"], ["--seed", "7"]):
        assert pair in options
    plain = given.model_copy(update={"task_dirs": (), "extra_body": {}})
    command = words.repeat_command(Path("runs/old"), {"settings": plain.model_dump(mode="json")})
    ran = CliRunner().invoke(app, [*shlex.split(command or "")[1:], "--dry-run"])
    assert ran.exit_code == 0, ran.output
    assert "4 episodes of at most 4 rounds" in ran.output


def test_no_settings_no_command() -> None:
    assert words.repeat_command(Path("runs/x"), {"settings": {}}) is None


def test_a_sweep_is_repeated_from_the_file_that_its_folder_keeps() -> None:
    config = {"settings": {"tasks": "seed/*"}, "conditions": [{"model": "a"}, {"model": "b"}]}
    assert words.repeat_command(Path("runs/x"), config) == "agentloop sweep runs/x/sweep.toml --name x-again"


def test_a_replay_names_the_file_of_a_long_token_and_the_folders_of_tasks(folder: Path) -> None:
    attempt = next(a for a in load_attempts(folder) if a.score and a.score.counterexample)
    assert attempt.score is not None
    example = {**(attempt.score.counterexample or {}), "token": "counterexamples/1234.json"}
    long = attempt.model_copy(update={"score": attempt.score.model_copy(update={"counterexample": example})})
    command = words.replay_command(Path("runs/x y"), long, {"settings": {"task_dirs": ["my tasks"]}})
    assert shlex.split(command or "")[2:] == [
        "runs/x y/counterexamples/1234.json",
        f"runs/x y/candidates/{attempt.candidate_id}.py",
        "--task-dir",
        "my tasks",
    ]
    shown = CliRunner().invoke(app, ["show", str(folder), attempt.episode_id])
    assert str(words.replay_command(folder, attempt, {})) in shown.output
