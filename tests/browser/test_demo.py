"""The page of a real run of the built-in author: what it says is so, and its commands do what it says."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentloop.scoring import load_attempts
from tests.browser.conftest import CHROMIUM, Open

COMMAND = [str(Path(sys.executable).with_name("agentloop"))]
GIVEN = ["--model", "offline", "--tasks", "seed/matmul,seed/elu", "--rounds", "2", "--name", "demo"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH: apt-get install chromium")
    work = tmp_path_factory.mktemp("demo")
    done = _agentloop(work, "run", *GIVEN)
    assert done.returncode == 0, done.stderr
    return work / "runs" / "demo"


def _agentloop(work: Path, *words: str) -> Any:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([*COMMAND, *words], cwd=work, env=environment, capture_output=True, text=True, timeout=280)


@pytest.mark.timeout(600)  # 15 s alone; other suites may share the cores
def test_what_happened_why_and_how_to_repeat_it(demo: Path, open_page: Open) -> None:
    page = open_page(demo)
    attempts = load_attempts(demo)
    first = [a for a in attempts if a.round == 0]
    solved = sum(a.status_stated == "pass" for a in first)
    assert f"{solved} of 2 first answers are right" in page.locator("#headline-0").inner_text()
    repeat = shlex.split(page.locator("#repeat .command code").first.inner_text())
    assert repeat[:2] == ["agentloop", "run"]
    assert repeat[2 : 2 + 4] == GIVEN[:4]  # tests/unit/test_page.py runs such a command
    failed = next(a for a in first if a.status == "fail" and a.score and a.score.counterexample)
    page.evaluate("id => { location.hash = '#/episode/' + encodeURIComponent(id); }", failed.episode_id)
    replay = shlex.split(page.locator("#round-0 .command code").inner_text())
    assert replay[:2] == ["agentloop", "replay"]
    replayed = _agentloop(demo.parent.parent, *replay[1:], "--json")
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    assert failed.score is not None
    assert failed.score.counterexample is not None
    shown = json.loads(replayed.stdout)
    for side in ("inputs", "got", "expected"):
        assert shown[side] == failed.score.counterexample[side]
