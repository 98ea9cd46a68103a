"""Sweeps as they run: real servers, client, prompts and run folders; the judge is a quick stand-in but for one test."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from agentloop import forecast, session, sweep
from agentloop.content import find_tasks
from agentloop.endpoints import open_budget, open_endpoints, open_prompters
from agentloop.errors import InfrastructureError, UsageError
from agentloop.files import read_lines
from agentloop.prompting import ARMS
from agentloop.store import Store, read_config
from tests.helpers import folders
from tests.helpers.servers import Behaviour, ScriptedServer, refuses, serving
from tests.helpers.sitting import StandInJudge, graded, known_tasks

ROOT = Path(__file__).parents[2]
KEYS = {"OPENAI_API_KEY": "sk-hosted", "LOCAL_KEY": "sk-local"}

BASE = """
tasks = "seed/softmax,seed/relu"
feedback = ["none", "verdict", "minimized"]
samples = 2
rounds = 3
tries = 1
"""


class Judge(StandInJudge):
    """What a sitting asks of its judge beside judging."""

    tolerance = SimpleNamespace(name="derived")
    backend = SimpleNamespace(name="interpreter", isolation=(), not_exercised=())


@contextmanager
def endpoints(*behaviours: Behaviour) -> Iterator[list[ScriptedServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(behaviour)) for behaviour in behaviours]


def model(server: ScriptedServer, name: str, **own: Any) -> str:
    """A model's table."""
    settings = {"model": name, "base_url": server.base_url} | own
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items()) + "}"


def read(tmp_path: Path, *models: str, text: str = BASE, **given: Any) -> sweep.Conditions:
    file = tmp_path / "s.toml"
    file.write_text(f"model = [{', '.join(models)}]\n{text}")
    return sweep.read(file, {"runs_dir": str(tmp_path), "name": "r"} | given)


def run(found: sweep.Conditions) -> tuple[int, str]:
    """One sitting, new or resumed; its exit code and what it printed."""
    path, said = Path(found[0].runs_dir) / found[0].name, io.StringIO()
    tasks = find_tasks(found[0].tasks, known_tasks())
    with open_endpoints(found) as opened:
        prompters, budget = open_prompters(found, tasks), open_budget(found)
        sitting = session.Sitting(found, tasks, opened, prompters, Judge(), budget)  # type: ignore[arg-type]
        exists = (path / "config.json").exists()
        with Store.open(path) if exists else Store.create(path, sitting.config()) as store:
            code = session.sit(sitting, store, Console(file=said, width=300))
    return code, said.getvalue()


def resumed(path: Path, **changes: Any) -> tuple[int, str]:
    return run(sweep.stored(read_config(path), path, changes))


def attempts(path: Path) -> list[dict[str, Any]]:
    """Attempts without what time tells, in the order of their ids."""
    return [row for _, row in sorted(folders.attempts(path).items())]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_every_condition_is_run_and_first_answers_are_shared(tmp_path: Path) -> None:
    text = BASE + 'prompt_strategy = ["zero_shot", "plan_first"]\n'
    with endpoints(graded) as [server]:
        found = read(tmp_path, model(server, "a"), model(server, "b", temperature=0.0), text=text)
        assert run(found)[0] == 0
        sent = len(server.log)
    rows = attempts(tmp_path / "r")
    assert {(r["model"], r["prompt_strategy"], r["feedback"]) for r in rows} == {
        (s.called, s.prompt_strategy, s.feedback) for s in found
    }
    first = [r for r in rows if r["round"] == 0]
    assert len(first) == 2 * 2 * 3 * 2 * 2
    assert len({r["response_id"] for r in first}) == len(first) // 3
    assert sent == len({r["response_id"] for r in rows})
    assert all(row["ends"] == (row["round"] == 2 or not _follows(row, rows)) for row in rows)


def _follows(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    return any(r["episode_id"] == row["episode_id"] and r["round"] == row["round"] + 1 for r in rows)


def test_each_model_is_asked_at_its_endpoint_with_its_key_and_settings(tmp_path: Path) -> None:
    with endpoints(graded, graded) as [hosted, local]:
        found = read(
            tmp_path,
            model(hosted, "big", temperature=0.1),
            model(local, "big", label="local", key_variable="LOCAL_KEY", max_tokens=99),
        )
        assert run(found)[0] == 0
        assert set(hosted.authorizations) == {"Bearer sk-hosted"}
        assert set(local.authorizations) == {"Bearer sk-local"}
        assert {(b["model"], b["temperature"], b["max_tokens"]) for b in hosted.log} == {("big", 0.1, 4096)}
        assert {(b["model"], b["temperature"], b["max_tokens"]) for b in local.log} == {("big", 0.8, 99)}
    assert {r["model"] for r in attempts(tmp_path / "r")} == {"big", "local"}
    assert all(key not in f.read_text() for key in KEYS.values() for f in (tmp_path / "r").rglob("*") if f.is_file())


def test_a_missing_key_is_said_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_KEY")
    with endpoints(graded) as [server]:
        with pytest.raises(UsageError, match="set LOCAL_KEY"):
            run(read(tmp_path, model(server, "a"), model(server, "b", key_variable="LOCAL_KEY")))
        assert server.log == []
    assert not (tmp_path / "r").exists()


# Requests; tokens, 10 an answer and some 4,400 set aside for a first request; money, at one a token of an answer.
PRICES = "prices = {a = {prompt = 0, completion = 1_000_000}}\nmax_tokens = 20\n"
BUDGETS = {"budget_requests": 7, "budget_tokens": 4_700, "budget_money": 41.0}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_stops_a_sweep_and_a_larger_one_completes_it(tmp_path: Path, name: str) -> None:
    limit = BUDGETS[name]
    with endpoints(graded) as [server]:
        whole = read(tmp_path, model(server, "a"), text=BASE + PRICES, name="whole")
        assert run(whole)[0] == 0
        needed = len(server.log)
        server.log.clear()
        code, said = run(read(tmp_path, model(server, "a"), text=BASE + PRICES + f"{name} = {limit}\n"))
        first = len(server.log)
        assert (code, 0 < first < needed) == (3, True)
        assert f"--{name.replace('_', '-')}" in said
        assert "episodes are not done: `agentloop resume" in said
        if name == "budget_requests":
            assert first == limit
        if name == "budget_money":
            assert first * 3 <= limit < (first * 3) + 20
        if name == "budget_tokens":
            assert first * 10 <= limit - 4000
        stored = {file.stem for file in (tmp_path / "r" / "responses").glob("*.json")}
        assert len(stored) == first
        assert {r["response_id"] for r in attempts(tmp_path / "r")} == stored, "what was answered is judged"
        assert resumed(tmp_path / "r")[0] == 3
        if name != "budget_tokens":  # prompts differ in length: a shorter one may still fit
            assert len(server.log) == first, "a resume with the same budget asks nothing"
        assert resumed(tmp_path / "r", **{name: limit * 1000})[0] == 0
        assert len(server.log) == needed
    assert attempts(tmp_path / "r") == attempts(tmp_path / "whole")


def test_a_budget_for_nothing_is_an_error_and_no_empty_report(tmp_path: Path) -> None:
    with endpoints(graded) as [server]:
        with pytest.raises(UsageError, match=r"--budget-tokens 9: 0 used.*no request could be sent.*agentloop resume"):
            run(read(tmp_path, model(server, "a"), text=BASE + "budget_tokens = 9\n"))
        assert server.log == []


def test_a_dry_run_bounds_what_a_run_uses(tmp_path: Path) -> None:
    """Every arm, whole histories: requests and tokens stay within what was foretold."""
    text = BASE.replace('feedback = ["none", "verdict", "minimized"]', f"feedback = {json.dumps(ARMS)}")
    with endpoints(graded) as [server]:
        found = read(tmp_path, model(server, "a"), text=text + 'history = "all"\n')
        tasks = find_tasks(found[0].tasks, known_tasks())
        episodes = session.plan(found, {"a": ("a",)}, tasks)
        bound = forecast.forecast(episodes, open_prompters(found, tasks), open_budget(found)).total
        assert run(found)[0] == 0
    sent = [line for line in read_lines(tmp_path / "r" / "requests.jsonl")[0] if line["event"] == "sent"]
    assert len(sent) <= bound.requests
    assert sum(line["most_prompt_tokens"] for line in sent) <= bound.prompt_tokens
    assert sum(line["most_completion_tokens"] for line in sent) <= bound.completion_tokens


def test_a_model_that_is_down_holds_up_no_other(tmp_path: Path) -> None:
    with endpoints(graded, refuses(500)) as [well, down]:
        code, said = run(read(tmp_path, model(well, "well"), model(down, "down", concurrency=1)))
        asked = len(down.log)
    assert code == 3
    assert "episodes given up" in said
    assert asked < 12
    rows = attempts(tmp_path / "r")
    assert {r["model"] for r in rows} == {"well"}
    assert Counter(r["ends"] for r in rows)[True] == 12
    with endpoints(graded) as [
        server
    ]:  # the same address would be used; the folder names it, so it is put in its place
        config = json.loads((tmp_path / "r" / "config.json").read_text())
        for own in config["conditions"]:
            own["base_url"] = server.base_url
        (tmp_path / "r" / "config.json").write_text(json.dumps(config))
        assert resumed(tmp_path / "r")[0] == 0
    assert {r["model"] for r in attempts(tmp_path / "r")} == {"well", "down"}


def test_all_models_down_end_the_sweep(tmp_path: Path) -> None:
    with (
        endpoints(refuses(500), refuses(500)) as [one, two],
        pytest.raises(InfrastructureError, match="3 request faults"),
    ):
        run(read(tmp_path, model(one, "one"), model(two, "two")))


def test_a_users_own_prompts_are_sent_and_may_not_change_under_a_run(tmp_path: Path) -> None:
    mine = tmp_path / "prompts" / "mine"
    mine.mkdir(parents=True)
    (mine / "strategy.toml").write_text('description = "mine"\ntiers_stated = ["base"]\n')
    (mine / "system.j2").write_text("")
    (mine / "user.j2").write_text("Write {{ task.entry }}, in my own words.")
    arm = tmp_path / "prompts" / "feedback" / "verdict"
    arm.mkdir(parents=True)
    (arm / "arm.toml").write_text('description = "curt"\n')
    (arm / "user.j2").write_text("No.")
    text = BASE + f'prompt_strategy = ["mine", "zero_shot"]\nprompt_dirs = ["{tmp_path / "prompts"}"]\n'
    with endpoints(graded) as [server]:
        found = read(tmp_path, model(server, "a"), text=text)
        assert run(found)[0] == 0
        said = {body["messages"][-1]["content"] for body in server.log}
    assert {"Write softmax, in my own words.", "Write relu, in my own words.", "No."} <= said
    assert {tuple(r["tiers_stated"]) for r in attempts(tmp_path / "r") if r["prompt_strategy"] == "mine"} == {("base",)}
    (arm / "user.j2").write_text("No!")
    with pytest.raises(
        UsageError, match="the prompts of mine · verdict, zero_shot · verdict changed since the run began"
    ):
        session.resume(tmp_path / "r", {}, Console(file=io.StringIO()))


def test_the_command_runs_resumes_and_refuses_with_the_real_judge(tmp_path: Path) -> None:
    file = tmp_path / "arms.toml"
    file.write_text(
        'tasks = "seed/relu"\nfeedback = ["none", "minimized"]\nrounds = 2\ndomain = "core"\nbudget_requests = 2\n'
    )
    folder = tmp_path / "runs" / "arms"

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agentloop.cli", *words],
            env={**os.environ, "COLUMNS": "200"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    sweeping = ("sweep", str(file), "--runs-dir", str(tmp_path / "runs"))
    dry = command(*sweeping, "--dry-run")
    assert (dry.returncode, folder.exists()) == (0, False)
    assert "2 episodes of at most 2 rounds: at most 3 requests" in dry.stdout
    stopped = command(*sweeping)
    assert stopped.returncode == 3, stopped.stderr
    assert f"`agentloop resume {folder}` with a larger budget goes on" in stopped.stdout
    done = command("resume", str(folder), "--budget-requests", "3")
    assert done.returncode == 0, done.stderr
    assert {row["ends"] for row in read_lines(folder / "attempts.jsonl")[0] if row["round"] == 1} == {True}
    assert (folder / "sweep.toml").read_text() == file.read_text()
    assert (folder / "report.html").exists()
    again = command(*sweeping)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert f"exists with these settings: `agentloop resume {folder}` goes on with it" in again.stderr
