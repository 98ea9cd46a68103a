"""Times of kernels without a GPU: arithmetic, what is refused, what a run folder keeps. All times here are planted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from agentloop import report, timing
from agentloop.cli import app
from agentloop.content import load_tasks
from agentloop.records import SpeedRecord
from agentloop.scoring import load_attempts
from agentloop.speeds import load_speeds, speed_figures, worth_timing
from agentloop.store import Store
from oracle.dtypes import to_torch
from oracle.errors import InfrastructureError
from oracle.inputs import build, renewed
from oracle.reference import reference
from oracle.speed import Speed
from oracle.speed.figures import suspicions
from oracle.speed.floor import Peaks, floor_us, least_traffic
from oracle.speed.shape import ELEMENTS, LEAST_IN_CHUNK, REPETITIONS, WARM_UP, counted, schedule, timed_case, timed_dims
from oracle.worker.protocol import Times, shrunk
from oracle.worker.repeating import renew
from tests.browser.folders import write_run

TASKS = load_tasks()
H200 = SimpleNamespace(
    name="H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    clock_rate=1_980_000,
    memory_clock_rate=3_201_000,
    memory_bus_width=6144,
)


def planted(**changes: Any) -> Speed:
    plain = Speed(
        median_us=10.0, p10_us=9.0, p90_us=12.0, eager_us=15.0, eager_p10_us=14.0, eager_p90_us=16.0, speedup=1.5,
        floor_us=5.0, flags=[], message="", shape={"R": 8}, dtype="float32", repetitions=60, gpu="planted",
    )  # fmt: skip
    return Speed(**{**vars(plain), **changes})


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_timed_at_a_size_that_says_something(name: str) -> None:
    task = TASKS[name]
    dims = timed_dims(task)
    sizes = [int(np.prod(tensor.sizes(dims))) for tensor in task.forms[0].tensors]
    assert ELEMENTS // 12 < sum(sizes) <= ELEMENTS
    assert dims == timed_dims(task)


def test_a_schedule_is_long_enough_never_repeats_contents_and_is_not_known_beforehand() -> None:
    chunks = schedule()
    offsets = [offset for chunk in chunks for offset in chunk]
    assert sum(len(chunk) - WARM_UP for chunk in chunks) == REPETITIONS
    assert min(map(len, chunks)) >= LEAST_IN_CHUNK + WARM_UP
    assert len(set(map(shrunk, offsets))) == len(offsets)
    assert all(0 < offset < ELEMENTS and 0.5 < shrunk(offset) < 1.0 for offset in offsets)
    assert schedule() != chunks
    assert counted(range(20)) == range(5, 20)
    assert counted(range(4)) == range(1, 4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_renewed_inputs_are_those_that_the_process_makes_and_have_their_own_answer(dtype: str) -> None:
    task = TASKS["ops/cross_entropy"]
    inputs = build(task, timed_case(task, 0).with_(dims=task.base_dims(), dtype=dtype))
    other = renewed(inputs, 5)
    for before, after in zip(inputs.tensors, other.tensors, strict=True):
        source = to_torch(before.values()).reshape(-1)
        target = torch.empty_like(source)
        renew(target, source, 5)
        assert torch.equal(target, to_torch(after.values()).reshape(-1))
    assert other.digest != inputs.digest
    assert reference(task, other).outputs[0].values != reference(task, inputs).outputs[0].values


@pytest.mark.parametrize("name", TASKS)
def test_an_answer_kept_from_another_repetition_is_wrong_for_every_task(name: str) -> None:
    """Operators that do not see the order of elements too, such as a standard deviation."""
    task = TASKS[name]
    inputs = build(task, timed_case(task, 0).with_(dims=task.base_dims()))
    first, second = (reference(task, renewed(inputs, offset)) for offset in schedule()[0][:2])
    pairs = zip(first.outputs, second.outputs, strict=True)
    assert any(not np.allclose(a.values, b.values, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in pairs)


def test_the_floor_is_what_must_be_moved_or_multiplied_at_the_peak() -> None:
    peaks = Peaks.of(H200, "float32")
    assert peaks.bytes == pytest.approx(4.917e12, rel=1e-3)
    assert peaks.operations == pytest.approx(535e12, rel=1e-2)  # TF32, dense, at the boost clock
    assert Peaks.of(H200, "float16").operations == pytest.approx(1070e12, rel=1e-2)
    assert floor_us(4_917_000, 0, peaks) == pytest.approx(1.0, rel=1e-3)
    assert floor_us(0, 535_000_000, peaks) == pytest.approx(1.0, rel=1e-2)
    assert (
        floor_us(10, 10, Peaks.of(SimpleNamespace(name="?", major=1, minor=0, multi_processor_count=1), "float32"))
        is None
    )


@pytest.mark.parametrize(
    ("name", "elements"),
    [("ops/add", 3 * 8 * 256), ("ops/sum", 8 * 256 + 8), ("ops/embedding", 8 * 2 + 8 * 64)],
    ids=["add", "sum", "embedding: indices and rows chosen, not the whole table"],
)
def test_the_least_traffic(name: str, elements: int) -> None:
    task = TASKS[name]
    inputs = build(task, timed_case(task, 0).with_(dims=task.base_dims()))
    assert least_traffic(inputs, reference(task, inputs)) == 4 * elements


def test_clocks_are_held_against_each_other() -> None:
    def kinds(event: float, host: float, wall: float, floor: float | None = 5.0) -> list[str]:
        times = Times((event,) * 60, (host,) * 60, (1,) * 60, wall)
        return [kind for kind, _ in suspicions(times.event_us, times.host_us, 1500.0, [times], floor)]

    assert kinds(10.0, 1520.0, 60 * 1520.0) == []
    assert kinds(10.0, 1520.0, 60 * 1520.0, None) == []
    assert kinds(4.0, 1520.0, 60 * 1520.0) == ["impossible"]
    assert kinds(10.0, 1800.0, 60 * 1800.0) == ["unaccounted"]
    assert kinds(10_000.0, 13_000.0, 60 * 13_000.0) == []  # within a share of its own time
    assert kinds(10.0, 1520.0, 60 * 5000.0) == ["clock"]


def record(run: Path, attempt: Any, **changes: Any) -> SpeedRecord:
    speed = planted(**changes).to_json()
    return SpeedRecord(task=attempt.task, task_hash="0", candidate_id=attempt.candidate_id, time=0.0, speed=speed)


def plant(run: Path, records: list[SpeedRecord]) -> None:
    (run / "speed.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "timed", 60, models=("m",), arms=("none",))


def test_fast_p_is_the_share_of_all_answers_that_are_right_and_fast(run: Path) -> None:
    first = [attempt for attempt in load_attempts(run) if attempt.round == 0]

    def figures(*speeds: dict[str, Any]) -> dict[str, Any]:
        timed = {(a.task, a.candidate_id or ""): planted(**s) for a, s in zip(chosen, speeds, strict=False)}
        found = speed_figures(chosen, timed)
        assert found is not None
        return found

    passed, failed = {"status": "pass", "reason": ""}, {"status": "fail", "reason": ""}
    right = [
        a.model_copy(update={"status": "pass", "status_stated": "pass", "naive": {"kernelbench": passed}})
        for a in first
    ]
    wrong = right[1].model_copy(update={"status": "fail", "status_stated": "fail"})
    strict = right[2].model_copy(update={"naive": {"kernelbench": failed}})
    chosen = [right[0], wrong, strict, right[3]]
    assert len({a.task for a in chosen}) == 4
    found = figures({"speedup": 1.2}, {"speedup": 3.0}, {"speedup": 1.0}, {"speedup": 2.5, "flags": ["impossible"]})
    value = {check: {p: e["value"] for p, e in row.items()} for check, row in found["fast_p"].items()}
    assert value["oracle"] == {"0.5": 0.5, "0.8": 0.5, "1": 0.25, "1.5": 0.0, "2": 0.0}  # > p, not >=
    assert value["kernelbench"] == {"0.5": 0.75, "0.8": 0.75, "1": 0.75, "1.5": 0.5, "2": 0.5}
    assert found["fast_p"]["oracle"]["1"]["tasks"] == 4
    assert (found["timed"], found["untimed"], found["flagged"]) == (4, 0, 1)
    assert found["fast_and_wrong"] == {"kernelbench": 2}
    found = figures({"median_us": None, "speedup": None, "flags": ["timeout"]})
    assert (found["untimed"], found["fast_p"]["kernelbench"]["0.5"]["value"]) == (3, 0.0)
    other = right[0].model_copy(update={"attempt_id": "other", "candidate_id": "other"})
    chosen = [right[0], other, right[3]]  # two samples of a task, one of another
    found = figures({"speedup": 2.0}, {"speedup": 2.0}, {"speedup": 0.1})
    assert found["fast_p"]["oracle"]["1"]["value"] == 0.5
    assert speed_figures(first, {}) is None


def test_planted_times_are_reported_and_a_run_without_says_nothing(run: Path) -> None:
    summary, page = report.write(run)
    assert {model["speed"] for model in summary["models"].values()} == {None}
    assert "fast_p" not in page.read_text()
    plant(run, [record(run, a) for a in load_attempts(run) if worth_timing(a)][:20])
    summary, page = report.write(run)
    assert summary["models"]["m · zero_shot"]["speed"]["timed"] > 0
    assert "fast_p" in page.read_text()
    shown = CliRunner().invoke(app, ["report", str(run)])
    assert "fast_p" in shown.output
    table = CliRunner().invoke(app, ["export", str(run)]).output
    assert "speed.median_us" in table.splitlines()[0]


def test_a_killed_timing_goes_on_where_it_was(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Planted:
        def __init__(self, judge: Any) -> None:
            pass

        def time(self, task: Any, source: str) -> Speed:
            asked.append(source)
            if len(asked) == 3:
                raise KeyboardInterrupt
            if len(asked) == 5:
                raise InfrastructureError("planted")
            return planted()

    monkeypatch.setattr(timing, "Stopwatch", Planted)
    wanted = {(a.task, a.candidate_id) for a in load_attempts(run) if worth_timing(a)}
    before = (run / "attempts.jsonl").read_bytes()
    judge: Any = None
    with Store.open(run) as store:
        with pytest.raises(KeyboardInterrupt):
            timing.time_candidates(store, TASKS, judge)
        assert len(load_speeds(run)) == 2
        with (run / "speed.jsonl").open("a") as file:
            file.write('{"task": "ops/')  # as a kill leaves it
        assert len(timing.time_candidates(store, TASKS, judge)) == 1
        assert timing.time_candidates(store, TASKS, judge) == []
        assert timing.time_candidates(store, TASKS, judge) == []
    assert set(load_speeds(run)) == wanted
    assert len(asked) == len(wanted) + 2  # the two that failed were tried again, no other
    assert (run / "attempts.jsonl").read_bytes() == before


def test_the_interpreter_is_not_timed(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("def relu(x):\n    return x\n")
    backend, runs = ["--backend", "interpreter", "--speed"], str(tmp_path / "runs")
    asked = (
        ["judge", str(file), "--task", "ops/relu", *backend],
        ["run", "--model", "offline", "--tasks", "ops/relu", "--runs-dir", runs, *backend],
    )
    for command in asked:
        ran = CliRunner().invoke(app, command)
        assert ran.exit_code != 0
        assert "--speed needs --backend cuda" in str(ran.exception) + ran.output
    assert not (tmp_path / "runs").exists()
