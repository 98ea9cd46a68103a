"""Runs that are killed, interrupted, filled up and locked out at random moments, under a misbehaving server and a jumping
clock: `tests/helpers/storm.py` says what must hold after each blow and at the end.

The whole matrix: `make test-slow`, or `python -m pytest tests/e2e/test_storm.py -m slow`.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.storm import BLOWS, command_line

ROOT = Path(__file__).parents[2]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = [*command_line("", 0, 0)[:2], "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="needs a mount namespace of its own (unshare -m)")


def storm(scene: str, runs: int, seed: int) -> dict[str, Any]:
    command = command_line(scene, runs, seed)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
    found = json.loads(done.stdout)
    print(scene, done.stdout)
    assert sum(found.get(blow, 0) for blow in BLOWS) >= 2 * runs, "most blows came too late: the test shows nothing"
    return found


def test_a_run_in_a_storm() -> None:
    """One run, another storm each time; a failure names the command that repeats it."""
    storm("sample", 1, random.randrange(1 << 30))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_fifty_runs_of_300_attempts_in_a_storm() -> None:
    """Five storms of ten runs side by side: a run waits more than it works."""
    with ThreadPoolExecutor(5) as pool:
        storms = list(pool.map(lambda seed: storm("quick", 10, seed), range(20, 25)))
    found = Counter[str]()
    for one in storms:
        found.update({name: number for name, number in one.items() if isinstance(number, int)})
    print(found)
    assert found["runs"] == 50
    assert found["attempts"] >= 50 * 300
    assert found["left in doubt"] > 50
    assert all(found[blow] >= 40 for blow in BLOWS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_runs_of_300_attempts_with_the_real_judge_in_a_storm() -> None:
    found = storm("real", 3, 21)
    assert found["attempts"] >= 3 * 300
