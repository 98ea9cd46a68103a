"""`agentloop bench`: how fast this machine judges, and where the time goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agentloop.bench import Figure, candidates, judging, loop, memory, pool
from agentloop.bench.machine import Others
from agentloop.content import load_tasks
from agentloop.errors import UsageError
from agentloop.machine import hardware, versions
from agentloop.progress import announce
from oracle.backends import WorkerBackend, open_backend

PARTS = ("judging", "pool", "memory", "loop")


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer candidates: about two minutes, rougher figures.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    parts: Annotated[str, typer.Option(help="Which parts, separated by commas.")] = ",".join(PARTS),
    backend: Annotated[str, typer.Option(help="auto, interpreter or cuda.")] = "auto",
    allow_unsafe: Annotated[bool, typer.Option(help="Run even where files and network cannot be blocked.")] = False,
) -> None:
    """Measure where judging time goes, what a process costs, memory over a long run and the loop's own cost."""
    wanted = [part.strip() for part in parts.split(",")]
    if not set(wanted) <= set(PARTS):
        raise UsageError(f"--parts {parts!r} must be some of {', '.join(PARTS)}")
    others = Others()
    announce(f"starting the judge, backend {backend}")
    engine = open_backend(backend, allow_unsafe=allow_unsafe)
    assert isinstance(engine, WorkerBackend)
    try:
        figures = [figure for part in wanted for figure in _measures(engine, quick)[part]()]
    finally:
        engine.close()
    report = {
        "machine": hardware() | {"versions": versions(), "percent_taken_by_others": round(others.share(), 1)},
        "backend": engine.name,
        "isolation": engine.isolation,
        "quick": quick,
        "figures": [asdict(figure) | {"met": figure.met} for figure in figures],
    }
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        _show(Console(), report, figures)


def _measures(engine: WorkerBackend, quick: bool) -> dict[str, Callable[[], list[Figure]]]:
    """Each part, at its size."""
    tasks = load_tasks()
    builds = 1 if quick else 3
    right, wrong = candidates.right(tasks, builds), candidates.wrong(tasks, 1)
    few = right[:: 3 if quick else 6]
    return {
        "judging": lambda: judging.measure(engine, right[:: 2 if quick else 1], wrong[:: 3 if quick else 1]),
        "pool": lambda: pool.measure(engine, few, starts=20 if quick else 50, repeats=1 if quick else 5),
        "memory": lambda: memory.measure(engine, [*few, *wrong], 100 if quick else 2000, workers=2),
        "loop": lambda: loop.measure(engine, tasks, 300 if quick else 5000),
    }


def _show(console: Console, report: dict, figures: list[Figure]) -> None:
    machine = report["machine"]
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {report['backend']} backend; other programs took "
        f"{machine['percent_taken_by_others']}% of the processors' time meanwhile",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    for heading, justify in (
        ("part", "left"),
        ("what", "left"),
        ("measured", "right"),
        ("target", "right"),
        ("", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for figure in figures:
        target = "" if figure.target is None else f"{'≤' if figure.at_most else '≥'} {figure.target:g} {figure.unit}"
        colour = {True: "green", False: "red", None: ""}[figure.met]
        measured = f"{figure.value:.{1 if figure.value >= 10 else 2}f} {figure.unit}"
        table.add_row(figure.part, figure.name, f"[{colour}]{measured}[/]" if colour else measured, target, figure.note)
    console.print(table, highlight=False)
