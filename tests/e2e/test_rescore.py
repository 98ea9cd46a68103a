"""`agentloop rescore`: stored candidates judged anew, killed in the middle, gone on with; their own run stays untouched."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentloop import rescoring
from agentloop.cli import app
from agentloop.content import load_tasks
from agentloop.files import read_lines
from agentloop.report.words import repeat_command
from agentloop.scoring import load_attempts
from agentloop.store import read_config
from oracle.errors import InfrastructureError
from oracle.verdict import Verdict
from tests.helpers.attempts import attempt
from tests.helpers.command import main
from tests.helpers.made import KERNELS, contents, make_run
from tests.helpers.sitting import StandInBackend, StandInJudge

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
RIGHT, WRONG = ((KERNELS / f"gelu__{name}.py").read_text() for name in ("control_flat", "bug_half_dropped"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A run that booked a wrong kernel as right, a right one as wrong, and an answer without code as right."""
    named = {"task": "seed/gelu", "task_hash": load_tasks()["seed/gelu"].digest}
    return make_run(
        tmp_path / "runs" / "before",
        [
            (attempt(True, sample=0, **named), WRONG),
            (attempt(False, sample=1, told=False, **named), RIGHT),
            (attempt(True, sample=2, **named), None),
        ],
        episodes=3,
        tasks={"seed/gelu": "of then"},
    )


def test_candidates_are_judged_anew_through_a_kill_and_nothing_is_lost(source: Path) -> None:
    before, runs = contents(source), str(source.parent)
    options = ["rescore", "before", "--seed", "7", "--domain", "core", "--workers", "1", "--runs-dir", runs]
    command = [sys.executable, "-m", "agentloop.cli", *options]
    process = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    path = source.parent / "before-rescored-core-7"
    while not read_lines(path / "attempts.jsonl")[0]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    killed_at = len(read_lines(path / "attempts.jsonl")[0])
    assert killed_at < 3
    done = subprocess.run(
        [sys.executable, "-m", "agentloop.cli", "resume", str(path)],
        env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 of 3 verdicts over the stated tiers changed" in done.stdout
    assert "seed/gelu:1:0: fail, now pass" in done.stdout
    assert contents(source) == before

    old, new = ({a.attempt_id: a for a in load_attempts(folder)} for folder in (source, path))
    assert len(read_lines(path / "attempts.jsonl")[0]) == 3
    found = {
        a.sample: (a.status, a.status_stated, (a.score.failure or {}).get("kind")) for a in new.values() if a.score
    }
    assert found == {
        0: ("fail", "fail", "numerical_mismatch"),
        1: ("pass", "pass", None),
        2: ("fail", "fail", "no_code"),
    }
    anew = {"oracle_version", "domain", "seed", "naive", "score", "status", "status_stated", "timings",
            "time", "rescored_from"}  # fmt: skip
    for name, was in old.items():
        assert new[name].model_dump(exclude=anew) == was.model_dump(exclude=anew)
        assert (new[name].seed, new[name].domain, new[name].rescored_from) == (7, "core", str(source))
        assert set(new[name].naive) >= {"kernelbench", "tritonbench"}
    kept = contents(path)
    assert {f: data for f, data in kept.items() if f.startswith(("responses", "candidates"))} == {
        f: data for f, data in before.items() if f.startswith(("responses", "candidates"))
    }
    assert kept["requests.jsonl"] == b""
    assert json.loads(kept["summary.json"])["requests"]["sent"] == 0
    assert "report.html" in kept
    told = repeat_command(path, read_config(path)) or ""
    assert shlex.split(told)[:3] == ["agentloop", "rescore", str(source)]
    compared = CliRunner().invoke(app, ["compare", str(source), str(path), "--json"])
    assert json.loads(compared.output)["judged_unlike"][-1].startswith("seed: before 0; before-rescored-core-7 7")


class Notes(StandInJudge):
    """Notes what it is asked, and breaks on what it is told to."""

    def __init__(self, breaks: bool = False) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self.breaks = breaks

    def judge(self, task: Any, source: str, **question: Any) -> Verdict:
        self.asked.append(question)
        if self.breaks:
            raise InfrastructureError("no worker starts")
        return super().judge(task, source, **question)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Notes:
    stand_in = Notes()
    monkeypatch.setattr(rescoring, "open_backend", lambda *_, **__: StandInBackend())
    monkeypatch.setattr(rescoring, "open_judge", lambda *_, **__: stand_in)
    return stand_in


def rescore(source: Path, *options: str) -> int:
    return main("rescore", source.name, "--runs-dir", str(source.parent), *options)


def test_what_the_author_was_shown_stays_out_of_the_score(tmp_path: Path, judge: Notes) -> None:
    one = attempt(False, task="seed/gelu")
    assert one.score is not None
    shown = one.score.model_copy(update={"excluded": ["a", "b"], "forbidden": ["host_compute"]})
    source = make_run(tmp_path / "r", [(one.model_copy(update={"score": shown}), "GRADE = 0")])
    assert rescore(source) == 0
    (question,) = judge.asked
    assert (question["stream"], question["exclude"], question["forbid"]) == ("score", {"a", "b"}, {"host_compute"})
    (again,) = load_attempts(tmp_path / "r-rescored")
    assert again.score is not None
    assert (again.status, again.score.excluded, again.score.forbidden) == ("pass", ["a", "b"], ["host_compute"])
    assert again.feedback_verdict == one.feedback_verdict
    assert again.ends == one.ends


def test_equal_candidates_are_judged_once_and_new_attempts_are_taken_up(tmp_path: Path, judge: Notes) -> None:
    rows = [(attempt(True, task="seed/gelu", sample=s), "GRADE = 3") for s in range(4)]
    source = make_run(tmp_path / "r", rows[:2])
    assert rescore(source, "--name", "n") == 0
    assert len(judge.asked) == 1
    with rescoring.Store.open(source) as store:
        store.add(rows[2][0].model_copy(update={"candidate_id": store.save_candidate("GRADE = 0")}))
    assert rescore(source, "--name", "n") == 0
    assert len(judge.asked) == 2
    assert [a.status for a in load_attempts(tmp_path / "n")] == ["fail", "fail", "pass"]


def test_only_some_tasks(tmp_path: Path, judge: Notes) -> None:
    rows = [(attempt(True, task=t), f"GRADE = 0  # {t}") for t in ("seed/gelu", "seed/relu", "gone/task")]
    source = make_run(tmp_path / "r", rows)
    assert rescore(source, "--tasks", "seed/r*") == 0
    assert [a.task for a in load_attempts(tmp_path / "r-rescored-seed-r")] == ["seed/relu"]


def test_a_judge_that_fails_owes_and_a_resume_tries_again(
    tmp_path: Path, judge: Notes, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.breaks = True
    rows = [(attempt(True, task="seed/gelu", sample=s), f"GRADE = 0  # {s}") for s in range(2)]
    source = make_run(tmp_path / "r", rows)
    assert rescore(source, "--workers", "1") == 3
    assert load_attempts(tmp_path / "r-rescored") == []
    assert "2 owed, last: no worker starts" in capsys.readouterr().out
    judge.breaks = False
    assert main("resume", str(tmp_path / "r-rescored")) == 0
    assert len(load_attempts(tmp_path / "r-rescored")) == 2


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    capsys.readouterr()
    assert main(*arguments) == code
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("error: "))
    return line


def test_what_cannot_be_is_refused_in_one_line(source: Path, judge: Notes, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ["--runs-dir", str(source.parent)]
    assert "is not this rescoring" in refused(capsys, 2, "rescore", "before", "--name", "before", *runs)
    assert "--tasks" in refused(capsys, 2, "rescore", "before", "--tasks", "seed/gulu", *runs)
    assert "--domain" in refused(capsys, 2, "rescore", "before", "--domain", "half", *runs)
    assert "no run 'after'" in refused(capsys, 2, "rescore", "after", *runs)
    assert rescore(source, "--name", "n") == 0
    assert "is not this rescoring" in refused(capsys, 2, "rescore", "before", "--seed", "9", "--name", "n", *runs)
    for file in (source / "candidates").iterdir():
        file.unlink()
    assert "No such file" in refused(capsys, 2, "rescore", "before", "--name", "m", *runs)


def test_a_tolerance_that_a_task_lacks_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make_run(
        tmp_path / "r", [(attempt(True, task="ops/add"), "import triton\n\ndef add(x, y):\n    return x")]
    )
    line = refused(capsys, 2, "rescore", str(source), "--tolerance", "paper", "--runs-dir", str(tmp_path))
    assert "--tolerance paper: ops/add has no published tolerance" in line
