"""The measurements of `agentloop bench`, each at its smallest: what figures must hold whatever the machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import cache

import pytest

from agentloop.bench import Figure, candidates, judging, loop, machine, memory, pool
from agentloop.bench.machine import Others
from agentloop.content import load_tasks
from oracle.backends import WorkerBackend

tasks = cache(load_tasks)


def values(figures: list[Figure]) -> dict[str, float]:
    return {figure.name: figure.value for figure in figures}


def test_shares_add_up_and_the_candidates_own_time_is_told_apart(backend: WorkerBackend):
    right = [sample for sample in candidates.right(tasks(), 1) if sample.task.name in ("relu", "bmm")]
    wrong = candidates.wrong(tasks(), 1)[:1]
    found = values(judging.measure(backend, right, wrong))
    for side in ("right", "wrong"):
        shares = {name: value for name, value in found.items() if name.startswith(f"share, {side}")}
        assert sum(shares.values()) == pytest.approx(100.0)
        assert {f"share, {side}: execute", f"share, {side}: start"} <= shares.keys()
        assert min(shares.values()) > -0.5
        assert 0 < found[f"overhead, {side}"] < 100
    assert all(found[name] > 0 for name in ("right, elementwise or row-wise", "right, matmul and attention"))
    assert found["wrong, to minimize it"] > 0


def test_a_warm_start_is_far_quicker_than_a_fresh_one(backend: WorkerBackend):
    few = [sample for sample in candidates.right(tasks(), 1) if sample.task.name in ("relu", "silu")]
    found = values(pool.measure(backend, few, starts=3, repeats=1))
    assert found["fresh against warm"] > 5
    assert 0.3 < found["two workers against one"] < 4


def test_memory_is_that_of_the_judge_and_of_every_warm_parent(backend: WorkerBackend):
    found = values(memory.measure(backend, candidates.wrong(tasks(), 1)[:1], count=2, workers=2))
    assert str(backend._parent.process.pid) in memory.descendants("self")
    assert min(found["judge, resident"], found["workers, resident"]) > 50


def test_the_loops_own_cost_is_told_per_attempt(backend: WorkerBackend):
    found = values(loop.measure(backend, tasks(), 30))
    assert 0.1 < found["processor time per attempt"] < 1000


def test_a_part_that_does_not_exist_is_refused():
    command = [sys.executable, "-m", "agentloop.cli", "bench", "--parts", "judging,colour"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "judging, pool, memory, loop" in ended.stderr


@pytest.mark.slow
def test_bench_prints_the_machine_and_its_targets():
    command = [sys.executable, "-m", "agentloop.cli", "bench", "--quick", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert {"processor", "cores", "percent_taken_by_others", "versions"} <= report["machine"].keys()
    assert sum(figure["target"] is not None for figure in report["figures"]) >= 10
    assert all((figure["met"] is None) == (figure["target"] is None) for figure in report["figures"])


def test_what_this_process_does_itself_is_not_others_work():
    alone = Others()
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    assert 0 <= alone.share() <= 100
    assert alone._own + 0.3 < machine._own()
