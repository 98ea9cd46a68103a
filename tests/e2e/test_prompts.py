"""`agentloop prompts`: what it lists, and that what it shows is what a run sends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentloop.cli import app
from agentloop.errors import UsageError
from agentloop.files import read_lines
from agentloop.prompting import ARMS
from tests.helpers.servers import Handler, completion, serving

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "oracle" / "corpus" / "kernels" / "seed"
STRATEGIES = {"zero_shot", "one_shot", "few_shot", "plan_first", "edge_cases", "bare_kernelbench", "bare_tritonbench"}


def shown(*words: str) -> dict[str, Any]:
    """What `agentloop prompts … --json` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        app(["prompts", *words, "--json"], standalone_mode=False)
    return json.loads(out.getvalue())


def test_the_seven_strategies_and_six_arms_are_listed() -> None:
    listed = shown("list")
    assert {strategy["name"] for strategy in listed["strategies"]} == STRATEGIES
    assert tuple(listed["feedback"]) == ARMS
    assert all(listed["feedback"].values())
    assert all(strategy["description"] for strategy in listed["strategies"])
    partial = {s["name"]: s["tiers_stated"] for s in listed["strategies"] if len(s["tiers_stated"]) < 7}
    assert partial == {"bare_kernelbench": ["base"], "bare_tritonbench": ["base", "shapes"]}


def wrong(handler: Handler, _: dict[str, Any]) -> None:
    """An author that gets gelu wrong by a factor."""
    kernel = (KERNELS / "gelu__bug_half_dropped.py").read_text()
    handler.reply(200, json.dumps(completion(f"```python\n{kernel}\n```")).encode())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two arms, in words of a user's own."""
    folder = tmp_path_factory.mktemp("prompts")
    mine = folder / "words" / "mine"
    mine.mkdir(parents=True)
    (mine / "strategy.toml").write_text('description = "mine"\ntiers_stated = ["base", "shapes"]\n')
    (mine / "system.j2").write_text("Be brief.")
    (mine / "user.j2").write_text('{% include "_shared/contract.j2" %}\n\n{% include "_shared/answer.j2" %}')
    file = folder / "s.toml"
    with serving(wrong) as server:
        file.write_text(
            f'model = "m"\nbase_url = "{server.base_url}"\ntasks = "seed/gelu"\nprompt_strategy = "mine"\n'
            f'prompt_dirs = ["{folder / "words"}"]\nfeedback = ["naive", "minimized"]\nrounds = 2\n'
        )
        command = [sys.executable, "-m", "agentloop.cli", "sweep", str(file), "--runs-dir", str(folder), "--name", "r"]
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("arm", ["naive", "minimized"])
def test_render_shows_what_a_run_sends(run: Path, arm: str) -> None:
    rows = read_lines(run / "r" / "attempts.jsonl")[0]
    rounds = sorted((row for row in rows if row["feedback"] == arm), key=lambda row: row["round"])
    sent = [
        json.loads((run / "r" / "responses" / f"{row['response_id']}.json").read_text())["messages"] for row in rounds
    ]
    words = ("render", "mine", "--task", "seed/gelu", "--prompt-dir", str(run / "words"))
    first = shown(*words)
    assert (first["messages"], first["prompt_id"]) == (sent[0], rounds[0]["prompt_id"])
    assert first["tiers_stated"] == rounds[0]["tiers_stated"] == ["base", "shapes"]
    assert sent[0][0] == {"role": "system", "content": "Be brief."}
    candidate = run / "r" / "candidates" / f"{rounds[0]['candidate_id']}.py"
    second = shown(*words, "--feedback", arm, "--after", str(candidate))
    assert (second["messages"], second["prompt_id"]) == (sent[1], rounds[1]["prompt_id"])


def test_nothing_follows_a_right_kernel() -> None:
    right = KERNELS / "relu__control_flat.py"
    with pytest.raises(UsageError, match="it passes the feedback cases"):
        shown("render", "bare_kernelbench", "--task", "seed/relu", "--after", str(right))
