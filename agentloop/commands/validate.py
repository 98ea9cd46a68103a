"""`agentloop validate`: the oracle on its own corpus, measured."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from agentloop.content import load_tasks
from agentloop.errors import UsageError
from agentloop.files import refuse_unusable, unwritable, write_json
from agentloop.machine import hardware, versions
from agentloop.progress import announce
from agentloop.report.validation import summarize
from agentloop.report.validation_tables import print_validation
from agentloop.validation import Records, Results, Stage, oracle_digest, run_stages
from oracle.backends import BACKENDS, open_backend
from oracle.corpus import CONTROL, kernels
from oracle.corpus.mutate import SCORING, TUNING
from oracle.tolerance import CALIBRATED_FILE
from oracle.validation import Bench, calibration, compiled, equivalence, mutation, strategies, verdicts

HALVES = {"tuning": (TUNING,), "scoring": (SCORING,), "both": (TUNING, SCORING)}
PARTS = ("paper", "strategies", "controls", "mutation", "proofs")


@dataclass(frozen=True)
class Size:
    """How much is measured. seeds: of the paper's corpus; others: seeds of the other right kernels; cases: per strategy,
    kernel and dtype; mutants: per mutation operator and half."""

    seeds: int
    others: int
    cases: int
    mutants: int
    domains: tuple[str, ...]


QUICK = Size(seeds=1, others=0, cases=10, mutants=1, domains=("full",))
FULL = Size(seeds=20, others=3, cases=100, mutants=20, domains=("core", "full"))


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)


def validate(
    quick: Annotated[bool, typer.Option("--quick", help="A small sample of everything, in minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Master seeds of the paper's corpus.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="F", help="File of single results, to go on from; else one in runs/."),
    ] = None,
    parts: Annotated[str, typer.Option(metavar="NAMES", help=f"Of {', '.join(PARTS)}.")] = ",".join(PARTS[:-1]),
    half: Annotated[str, typer.Option(help=f"Which mutants: {', '.join(HALVES)}.")] = "both",
    backend: Annotated[str, typer.Option(help=f"{', '.join(BACKENDS)}.")] = "auto",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Kernels judged side by side.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Keep the measured figures for tolerance policy `calibrated`.")
    ] = False,
    allow_unsafe: Annotated[bool, typer.Option(help="Run even where files and network cannot be blocked.")] = False,
) -> None:
    """Measure the oracle on its own corpus: the seed paper's table, published strategies, tolerances, mutants."""
    chosen = [part.strip() for part in parts.split(",") if part.strip()]
    _refuse_options(chosen, parts, half, quick, calibrate)
    for option, number in (("--seeds", seeds), ("--workers", workers)):
        if number is not None and number < 1:
            raise UsageError(f"{option} must be at least 1, not {number}")
    size = QUICK if quick else FULL
    plan = _stages(size, seeds or size.seeds, chosen, HALVES[half])
    if out is not None:
        refuse_unusable("--out", out)
    tasks = load_tasks()
    digest = oracle_digest(tasks)
    header = {"oracle": digest, "size": _plain(size), **versions()}
    results = Results(out or _default_file(quick, digest), header)
    announce(f"starting the judge, backend {backend}")
    engine = open_backend(backend, allow_unsafe=allow_unsafe)
    started = time.monotonic()
    try:
        results.open(engine.name)
        side_by_side = workers or len(os.sched_getaffinity(0))
        records = run_stages(Bench(engine, tasks), plan, results, side_by_side, _progress(as_json))
    finally:
        results.close()
        engine.close()
    about = {"backend": engine.name, **header, "hardware": hardware(), "half": half}
    summary = {**about, **summarize(records)}
    summary["seconds"]["wall"] = round(time.monotonic() - started, 1)
    if calibrate and "calibration" in summary:
        write_json(CALIBRATED_FILE, _calibration(records))
    if as_json:
        print(json.dumps(summary))
    else:
        print_validation(summary, Console())


def _refuse_options(chosen: list[str], parts: str, half: str, quick: bool, calibrate: bool) -> None:
    """Raises UsageError for values that are none, and for those that would measure or keep nothing."""
    if not set(chosen) <= set(PARTS) or not chosen:
        raise UsageError(f"--parts must be of {', '.join(PARTS)}, comma-separated, not {parts!r}")
    if half not in HALVES:
        raise UsageError(f"--half must be one of {', '.join(HALVES)}, not {half!r}")
    if quick and chosen == ["controls"]:
        raise UsageError("--parts controls: --quick measures none of them; leave --quick out or name another part")
    if calibrate and (quick or "strategies" not in chosen):
        raise UsageError(
            "--calibrate keeps figures of all right kernels, which part strategies measures in full: "
            "name it in --parts and leave --quick out"
        )


def _default_file(quick: bool, digest: str) -> Path:
    """One file per size and oracle, so that an interrupted measurement goes on and another oracle's is left alone."""
    path = Path("runs", f"validate-{'quick' if quick else 'full'}-{digest}.jsonl")
    if reason := unwritable(path.parent):
        raise UsageError(f"{reason}; name a file of results that can be written with --out")
    path.parent.mkdir(exist_ok=True)
    return path


def _stages(size: Size, seeds: int, parts: list[str], halves: tuple[str, ...]) -> list[Stage]:
    """The jobs of each part, in the order in which later ones need earlier ones."""
    paper, controls = kernels(suite="seed"), kernels(suite="ops", label=CONTROL)
    stages: list[Stage] = []
    if "paper" in parts:
        stages.append(lambda _: verdicts.naive_jobs(paper) + verdicts.jobs(paper, range(seeds), size.domains))
    if "strategies" in parts:
        right = kernels(suite="seed", label=CONTROL) if size.others == 0 else kernels(label=CONTROL)
        stages.append(lambda _: calibration.jobs(right))
        stages.append(lambda known: strategies.jobs(paper, size.cases, _calibration(known)["atol"]))
    if "controls" in parts and size.others:
        stages.append(lambda _: verdicts.jobs(controls, range(size.others), size.domains))
    if "mutation" in parts:
        stages.append(lambda _: [job for half in halves for job in mutation.jobs(half, size.mutants)])
        stages.append(
            lambda known: compiled.jobs({key: row for (part, key), row in known.items() if part == mutation.PART})
        )
    if "proofs" in parts:
        stages.append(lambda _: equivalence.jobs())
    return stages


def _calibration(records: Records) -> dict[str, Any]:
    return calibration.figures(row for (part, _), row in records.items() if part == calibration.PART)


def _plain(size: Size) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(size).items()}


def _progress(quiet: bool) -> Callable[[str, int, int], None]:
    """One line on stderr every few seconds."""
    last = [0.0]

    def tell(part: str, done: int, total: int) -> None:
        if not quiet and (time.monotonic() - last[0] > 10 or done == total):
            last[0] = time.monotonic()
            print(f"{part}: {done} of {total}", file=sys.stderr, flush=True)

    return tell
