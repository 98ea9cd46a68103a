"""Kill a run at any point and start it again: it ends with the same attempts as an unbroken one, at no request twice."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentloop.files import read_lines
from tests.helpers import sitting
from tests.helpers.folders import attempts, check_readable, key_of
from tests.helpers.servers import serving
from tests.helpers.sitting import slow

KILLS = 10
CONCURRENCY = 6
CHANGES = (f"concurrency={CONCURRENCY}", "samples=8", "workers=2", "judge_seconds=0.004")


@pytest.fixture(scope="module")
def processes() -> Any:
    """Fresh processes that already hold the imports: torch takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.sitting"])
    return context


def test_ten_kills_change_nothing(tmp_path: Path, processes: Any) -> None:
    moments = random.Random(20)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with serving(slow(0.03)) as server:
        calm = processes.Process(target=sitting.main, args=(str(whole), server.base_url, *CHANGES))
        calm.start()
        calm.join()
        assert calm.exitcode == 0
    with serving(slow(0.03)) as server:
        killed = 0
        while killed < KILLS:
            process = processes.Process(target=sitting.main, args=(str(broken), server.base_url, *CHANGES))
            seen = len(server.log)
            process.start()
            if killed:  # the first kill may come before the folder is whole; later ones while requests are under way
                _wait(lambda seen=seen, process=process: len(server.log) > seen or not process.is_alive())
            process.join(moments.uniform(0.0, 0.2))
            assert process.is_alive(), f"the run ended before kill {killed + 1}: the test must be made longer"
            process.kill()
            process.join()
            killed += 1
            check_readable(broken)
        last = processes.Process(target=sitting.main, args=(str(broken), server.base_url, *CHANGES))
        last.start()
        last.join()
        assert last.exitcode == 0
        asked = Counter(key_of(sitting.ENDPOINT, body) for body in server.log)

    assert attempts(broken) == attempts(whole)
    records = read_lines(broken / "requests.jsonl")[0]
    doubts = Counter(record["request_id"] for record in records if record["event"] == "in_doubt")
    assert doubts, "no kill left a request in doubt: the test shows nothing"
    assert doubts.total() <= KILLS * CONCURRENCY
    for request_id, times in asked.items():
        assert times <= 1 + doubts[request_id], "a request was sent again that was not in doubt"
    stored = {file.stem for file in (broken / "responses").glob("*.json")}
    assert stored == {row["response_id"] for row in attempts(broken).values()}
    assert {file.stem for file in (whole / "responses").glob("*.json")} == stored


def test_a_stored_response_is_not_asked_for_after_a_kill(tmp_path: Path, processes: Any) -> None:
    """What was stored when the kill came is never in the server's log again."""
    path = tmp_path / "r"
    with serving(slow(0.03)) as server:
        process = processes.Process(target=sitting.main, args=(str(path), server.base_url, *CHANGES))
        process.start()
        _wait(lambda: len(server.log) > 40)
        process.kill()
        process.join()
        time.sleep(0.1)  # let the server finish what was under way
        stored = {file.stem for file in (path / "responses").glob("*.json")}
        before = len(server.log)
        again = processes.Process(target=sitting.main, args=(str(path), server.base_url, *CHANGES))
        again.start()
        again.join()
        later = {key_of(sitting.ENDPOINT, body) for body in server.log[before:]}
    assert len(stored) > 20
    assert later
    assert not stored & later


def test_a_disk_that_fills_up_stops_the_run_and_loses_nothing(tmp_path: Path, processes: Any) -> None:
    whole, full = tmp_path / "whole", tmp_path / "full"
    changes = ("samples=2", "workers=2")
    with serving(sitting.graded) as server:
        sitting_down = [(whole, ()), (full, ("file_limit=60000",)), (full, ())]
        exits = []
        for path, more in sitting_down:
            process = processes.Process(target=sitting.main, args=(str(path), server.base_url, *changes, *more))
            process.start()
            process.join()
            exits.append(process.exitcode)
            if more:
                kept = attempts(path)
                assert 0 < len(kept) < len(attempts(whole))
    assert exits == [0, 3, 0]
    assert attempts(full) == attempts(whole)


@pytest.mark.slow
def test_a_killed_run_of_the_command_line_with_the_real_judge(tmp_path: Path) -> None:
    """Offline author, real judge: killed twice, resumed, equal to an unbroken run."""
    command = [sys.executable, "-m", "agentloop.cli"]
    options = ["--tasks", "seed/softmax,seed/relu", "--samples", "2", "--domain", "core", "--runs-dir", str(tmp_path)]
    done = subprocess.run([*command, "run", *options, "--name", "whole"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    total = len(attempts(tmp_path / "whole"))
    start = [*command, "run", *options, "--name", "broken"]
    for recorded in (1, total // 2):
        process = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait(lambda recorded=recorded: len(read_lines(tmp_path / "broken" / "attempts.jsonl")[0]) >= recorded, 200.0)
        process.kill()
        process.wait()
        start = [*command, "resume", str(tmp_path / "broken")]
    done = subprocess.run(start, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "attempts are recorded" in done.stdout
    assert attempts(tmp_path / "broken") == attempts(tmp_path / "whole")


def _wait(condition: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)
