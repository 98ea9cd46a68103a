"""`agentloop validate`: odd options, going on after a kill, and what its figures of mutants count."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agentloop.errors import UsageError
from agentloop.report import validation, validation_tables
from agentloop.validation import Records, Results, Stage, run_stages
from oracle.naive import PROFILES
from oracle.validation import Bench, Job, equivalence, mutation
from oracle.validation.equivalence import Proof
from tests.helpers.command import main

HEADER = {"oracle": "0123456789abcdef"}
SIZES = {"first": 6, "second": 6, "third": 6}


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, not 0"),
        (["--workers", "-1"], "--workers must be at least 1, not -1"),
        (["--parts", "paper,proof"], "--parts must be of paper, strategies, controls, mutation, proofs"),
        (["--parts", ","], "--parts must be of"),
        (["--half", "third"], "--half must be one of tuning, scoring, both, not 'third'"),
        (["--backend", "tpu", "--out", "new.jsonl"], "--backend 'tpu' is not one of auto, interpreter, cuda"),
        (["--calibrate", "--parts", "mutation"], "name it in --parts"),
        (["--calibrate", "--quick"], "leave --quick out"),
        (["--quick", "--parts", "controls"], "--quick measures none of them"),
        (["--out", "folder"], "--out folder is a folder: name a file"),
        (["--out", "absent/results.jsonl"], "there is no folder absent; make it first"),
        (["--out", "/proc/results.jsonl"], "cannot write /proc"),
        (["--out", "pipe"], "pipe: not a regular file"),
        (["--out", "text"], "text line 1 is damaged"),
        (["--out", "other.jsonl"], "holds results of another oracle or other settings ("),
    ],
)
def test_an_odd_option_is_one_line_and_exit_code_2(
    options: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("text").write_text("not a record\n")
    other = json.dumps(HEADER) + "\n"
    Path("other.jsonl").write_text(other)
    assert main("validate", *options) == 2
    error = capfd.readouterr().err
    assert told in error
    assert "starting the judge" not in error or "--backend" in options
    assert "Traceback" not in error
    assert Path("other.jsonl").read_text() == other


def test_a_file_named_runs_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("")
    assert main("validate", "--quick") == 2
    assert "--out" in capsys.readouterr().err


# --- going on after a kill ------------------------------------------------------------------------------------------


def stages(done: Path, seconds: float) -> list[Stage]:
    """Three stages of jobs that tell a file that they were run; those of a stage need the results of the one before."""

    def run(name: str, number: int, before: int, bench: Bench) -> dict[str, Any]:
        time.sleep(seconds)
        with done.open("a") as file:
            file.write(f"{name} {number}\n")
        return {"value": number + before}

    def stage(name: str, known: Records) -> list[Job]:
        before = sum(row["value"] for row in known.values())
        return [Job(name, str(number), partial(run, name, number, before)) for number in range(SIZES[name])]

    return [partial(stage, name) for name in SIZES]


def measure(folder: Path, seconds: float) -> Records:
    results = Results(folder / "results.jsonl", dict(HEADER))
    results.open("none")
    try:
        found = run_stages(None, stages(folder / "done", seconds), results, 2, lambda *_: None)  # type: ignore[arg-type]
    finally:
        results.close()
    return {key: {name: row[name] for name in row if name != "seconds"} for key, row in found.items()}


@pytest.mark.parametrize("stage", SIZES)
def test_a_killed_measurement_goes_on_where_it_was(stage: str, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    whole.mkdir()
    process = multiprocessing.get_context("fork").Process(target=measure, args=(killed, 0.03))
    process.start()
    results = killed / "results.jsonl"
    while not (results.exists() and f'"{stage}"' in results.read_text()):
        time.sleep(0.005)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept = [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")][1:]
    assert 0 < len(kept) < sum(SIZES.values())
    with results.open("a") as file:
        file.write('{"part":"third","key":"5","val')  # a line that the kill tore

    assert measure(killed, 0) == measure(whole, 0)
    lines = [json.loads(line) for line in results.read_text().splitlines()][1:]
    assert set(Counter((row["part"], row["key"]) for row in lines).values()) == {1}
    runs = Counter((killed / "done").read_text().splitlines())
    assert all(runs[f"{row['part']} {row['key']}"] == 1 for row in kept), "what was recorded is not measured again"


def test_results_on_another_backend_are_left_alone(tmp_path: Path) -> None:
    measure(tmp_path, 0)
    before = (tmp_path / "results.jsonl").read_bytes()
    with pytest.raises(UsageError, match=r"\(backend differ\)"):
        Results(tmp_path / "results.jsonl", dict(HEADER)).open("other")
    assert (tmp_path / "results.jsonl").read_bytes() == before


# --- figures of mutants ---------------------------------------------------------------------------------------------


def row(key: str, status: str, portability: str | None = "pass", **more: Any) -> dict[str, Any]:
    known = {"task": "ops/add", "kernel": "add__control_flat", "operator": "mask_dropped", "half": "scoring", "line": 7}
    told = {"description": "a → b", "kind": None, "tier": None, "message": "", "excluded": None}
    naive = {"naive": dict.fromkeys(PROFILES, "pass")}
    return {**known, **told, **naive, "key": key, "status": status, "portability": portability} | more


ROWS = [
    row("killed", "fail", None, kind="numerical_mismatch", tier="shapes"),
    row("reported", "pass", "fail"),
    row("survived", "pass"),
    row("unjudged", "unjudged", message="it spins"),
    row("equal", "pass"),
    row("proven", "pass", "fail"),
    row("strict", "pass", naive=dict.fromkeys(PROFILES, "fail")),
    row("raises", "fail", excluded=mutation.RAISES),
    row("refused", "fail", excluded=mutation.REFUSED),
]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    proof = Proof("proven", "add__control_flat", "a → b", "No lane reads it. " * 20, equivalence.CASES)
    monkeypatch.setattr(equivalence, "proofs", lambda: {"proven": proof})
    return validation.mutation_figures(ROWS, {"equal": True, "survived": False})


def test_a_mutant_counts_once_and_equivalent_ones_leave_the_adjusted_shares(figures: dict[str, Any]) -> None:
    score = figures["headline"]
    assert figures["excluded"] == {mutation.RAISES: 1, mutation.REFUSED: 1}
    fates = ("killed", "reported", "survived", "unjudged", "same code", "proof")
    assert score["fates"] == dict.fromkeys(fates, 1)
    assert score["killed"]["raw"]["value"] == pytest.approx(1 / 6)
    assert score["killed"]["adjusted"]["value"] == pytest.approx(1 / 4)
    assert score["failed_or_reported"]["raw"]["value"] == pytest.approx(3 / 6)
    assert score["failed_or_reported"]["adjusted"]["value"] == pytest.approx(2 / 4)
    assert figures["all"]["killed"]["raw"]["value"] == pytest.approx(1 / 7)


def test_every_survivor_is_printed_with_its_fate_and_why(figures: dict[str, Any]) -> None:
    page = io.StringIO()
    summary = {"oracle": "x", "backend": "interpreter", "torch": "2", "triton": "3", "seconds": {}}
    validation_tables.print_validation(
        summary | {"mutation": {"scoring": figures}}, Console(file=page, width=200, no_color=True)
    )
    text = page.getvalue()
    assert "failed or reported" in text
    for title, names in {
        "survivors among them:": ["reported reported", "survived survived", "unjudged unjudged", "same code equal"],
        "survivors that KernelBench's check fails:": ["survived strict"],
    }.items():
        listed = text.partition(title)[2].partition("survivors")[0]
        for name in names:
            assert f"  {name} ops/add add__control_flat:7 mask_dropped: a → b\n" in listed
    assert "  proof proven " in text
    assert "    No lane reads it. " in text
    assert f"    {validation.SAME_CODE}\n" in text
    assert "    it spins\n" in text
    assert max(map(len, text.partition("survivors")[2].splitlines())) < 200
    assert "  killed killed" not in text
