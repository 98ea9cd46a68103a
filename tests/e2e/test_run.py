"""`agentloop run` and `resume` as a user types them: real processes, a real server, the real judge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentloop import cli
from agentloop.files import read_lines
from agentloop.store import Store
from tests.helpers.servers import Handler, ScriptedServer, completion, refuses, sends, serving

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "oracle" / "corpus" / "kernels" / "seed"
KEY = "sk-a-secret-key"
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": KEY, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def repairs(handler: Handler, body: dict[str, Any]) -> None:
    """An author that gets gelu wrong by a factor and mends it when told."""
    name = "gelu__bug_half_dropped.py" if len(body["messages"]) == 2 else "gelu__control_flat.py"
    kernel = (KERNELS / name).read_text()
    handler.reply(200, json.dumps(completion(f"Sure:\n```python\n{kernel}\n```\nDone.")).encode())


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentloop.cli", *arguments]


def run_arguments(server: ScriptedServer, runs: Path, **options: str) -> list[str]:
    given = {"model": "some/model", "base-url": server.base_url, "runs-dir": str(runs), "name": "r", "rounds": "2"}
    given |= {"tasks": "seed/gelu", "domain": "core"} | options
    return ["run", *(word for name, value in given.items() for word in (f"--{name}", value))]


def test_a_run_repairs_resumes_and_leaves_a_whole_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(repairs) as server:
        arguments = run_arguments(server, tmp_path)
        done = subprocess.run(
            command(*arguments), env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        path = tmp_path / "r"
        attempts = read_lines(path / "attempts.jsonl")[0]
        assert [(a["task"], a["round"], a["status"]) for a in attempts] == [
            ("seed/gelu", 0, "fail"),
            ("seed/gelu", 1, "pass"),
        ]
        told = json.loads((path / "responses" / f"{attempts[1]['response_id']}.json").read_text())
        assert "every element is 2 times the reference" in told["messages"][-1]["content"]
        assert attempts[0]["score"]["counterexample"]["token"].startswith("al1:")
        for attempt in attempts:
            source = (path / "candidates" / f"{attempt['candidate_id']}.py").read_text()
            assert "@triton.jit" in source
            assert "Done." not in source
        assert {"config.json", "report.html", "summary.json", "requests.jsonl"} <= set(os.listdir(path))
        assert "seed/gelu some/model zero_shot minimized sample 0 round 0: fail" in done.stderr
        assert str(path / "report.html") in done.stdout
        assert all(KEY.encode() not in file.read_bytes() for file in path.rglob("*") if file.is_file())

        before = contents(path)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert main(monkeypatch, "resume", str(path)) == 0
        code, line = refusal(capsys, monkeypatch, *arguments)
        assert (code, f"agentloop resume {path}" in line) == (2, True)
        code, line = refusal(capsys, monkeypatch, *run_arguments(server, tmp_path, rounds="3", feedback="none"))
        assert (code, f"agentloop resume {path}" in line) == (2, True)
        assert "rounds: stored 2, given 3" in line
        assert "feedback: stored 'minimized', given 'none'" in line
        assert contents(path) == before
        assert len(server.log) == 2


def contents(path: Path) -> dict[str, bytes]:
    """What a run folder records (the report is written anew each time)."""
    written_anew = (".lock", "report.html", "summary.json")
    return {
        str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file() and f.name not in written_anew
    }


@pytest.mark.parametrize(
    ("sign", "background"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, sign: signal.Signals, background: bool) -> None:
    """Interrupted while one answer is judged and another is waited for. A script's shell starts what runs in the
    background with SIGINT ignored."""
    judged = threading.Event()

    def waits(handler: Handler, body: dict[str, Any]) -> None:
        if "gelu(x)" in body["messages"][1]["content"]:
            repairs(handler, body)
            judged.set()
        else:
            time.sleep(60)

    with serving(waits) as server:
        arguments = command(*run_arguments(server, tmp_path, tasks="seed/gelu,seed/relu", rounds="1"))
        before = signal.signal(signal.SIGINT, signal.SIG_IGN if background else signal.default_int_handler)
        try:
            process = subprocess.Popen(
                arguments, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        finally:
            signal.signal(signal.SIGINT, before)
        while not judged.wait(0.1):
            assert process.poll() is None, process.communicate()
        time.sleep(0.5)
        process.send_signal(sign)
        started = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert time.monotonic() - started < 20
    assert "Traceback" not in err
    assert "Exception" not in err
    assert f"agentloop resume {tmp_path / 'r'}" in out
    with Store.open(tmp_path / "r") as store:
        assert len(store.in_doubt) == 1
        assert store.attempts == {}


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit code of a command run in this process."""
    monkeypatch.setattr(sys, "argv", ["agentloop", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Exit code and the one line on stderr of a command that is refused, run in this process."""
    code = main(monkeypatch, *arguments)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return code, lines[0]


REFUSED = {
    "unknown task": (["--tasks", "seed/sofmax"], "--tasks.*did you mean.*softmax"),
    "no task": (["--tasks", ","], "--tasks names no task"),
    "rounds": (["--rounds", "0"], "--rounds.*greater than or equal to 1"),
    "arm": (["--feedback", "lots"], "--feedback.*'minimized'"),
    "strategy": (["--prompt-strategy", "lots"], "--prompt-strategy 'lots'.*zero_shot"),
    "domain": (["--domain", "lots"], "--domain.*'core' or 'full'"),
    "tolerance": (["--tolerance", "lots"], "toleran.*derived"),
    "name": (["--name", "../x"], "--name.*plain folder name"),
    "base url": (["--base-url", "localhost:80"], "--base-url.*http://HOST"),
    "password": (["--base-url", "http://me:pw@host/v1"], "--base-url.*password"),
    "extra body": (["--extra-body", "{"], "--extra-body is not JSON"),
    "extra body list": (["--extra-body", "[]"], "--extra-body must be a JSON object"),
    "extra body taken": (["--extra-body", '{"n": 2}'], "--extra-body.*must not set n"),
    "config absent": (["--config", "/nowhere.toml"], "--config /nowhere.toml.*No such file"),
    "recording absent": (["--model", "recorded:/nowhere"], "recorded:/nowhere does not exist"),
    "recorded rounds": (["--model", "recorded:x", "--rounds", "2"], "--rounds must be 1"),
    "recorded label": (["--model", "recorded:x", "--label", "y"], "--label must be ''"),
    "runs dir": (["--runs-dir", "/dev/null/runs"], "--runs-dir.*Not a directory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options, pattern = REFUSED[name]
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    defaults = {
        "--model": "m",
        "--base-url": "http://127.0.0.1:9/v1",
        "--tasks": "seed/relu",
        "--runs-dir": str(tmp_path),
    }
    if any(option in ("offline", "recorded:/nowhere", "recorded:x") for option in options):
        defaults = {"--runs-dir": str(tmp_path)}
    extra = [word for pair in defaults.items() if pair[0] not in options for word in pair]
    code, line = refusal(capsys, monkeypatch, "run", *options, *extra)
    assert code == 2
    assert re.search(pattern, line), line
    assert os.listdir(tmp_path) == []


def test_a_missing_key_is_said_before_anything_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("OPENAI_API_KEY", "AGENTLOOP_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    code, line = refusal(
        capsys, monkeypatch, "run", "--model", "m", "--tasks", "seed/relu", "--runs-dir", str(tmp_path)
    )
    assert code == 2
    assert "OPENAI_API_KEY" in line
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("samples = 'x'", "--samples"),
        ("sample = 3", "unknown setting sample; allowed: model"),
        ("[", "is not TOML"),
        ("feedback = ['none', 'error']", "--feedback is a list: `agentloop sweep .*run.toml`"),
    ],
)
def test_a_bad_config_file(
    text: str, pattern: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    code, line = refusal(capsys, monkeypatch, "run", "--config", str(file))
    assert code == 2
    assert re.search(pattern, line), line


def test_a_dry_run_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('tasks = ["seed/relu", "seed/gelu"]\nsamples = 3\nrounds = 4\nmax_tokens = 100\n')
    arguments = [
        "agentloop",
        "run",
        "--dry-run",
        "--config",
        str(file),
        "--samples",
        "2",
        "--runs-dir",
        str(tmp_path / "x"),
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert not caught.value.code
    out = capsys.readouterr().out
    assert "4 episodes of at most 4 rounds: at most 16 requests" in out
    assert "at most 1600 tokens" in out
    assert not (tmp_path / "x").exists()


SERVERS = {
    "refuses the key": (refuses(401), 2, "OPENAI_API_KEY"),
    "has no such model": (refuses(404, "model_not_found"), 2, "--model"),
    "is a web page": (sends(b"<html>Welcome</html>", content_type="text/html"), 3, "--base-url"),
    "breaks": (refuses(500, message="out of\ncheese"), 3, "out of cheese"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_none_ends_the_run_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    behaviour, expected, pattern = SERVERS[name]
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serving(behaviour) as server:
        code, line = refusal(capsys, monkeypatch, *run_arguments(server, tmp_path, tries="1"))
    assert code == expected
    assert re.search(pattern, line), line
    assert f"agentloop resume {tmp_path / 'r'}" in line
    assert read_lines(tmp_path / "r" / "attempts.jsonl")[0] == []


def test_resume_of_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, line = refusal(capsys, monkeypatch, "resume", "nothing", "--runs-dir", str(tmp_path))
    assert code == 2
    assert "no run 'nothing'" in line
