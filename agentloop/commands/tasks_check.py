"""`agentloop tasks check`: does every task refuse answers that know nothing, and sums in half precision?"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from agentloop.commands.tasks import AsJson, TaskDirs, commands
from agentloop.content import find_tasks, load_tasks
from agentloop.errors import EXIT_FAIL, EXIT_INFRASTRUCTURE, InfrastructureError, UsageError
from agentloop.progress import announce
from oracle.backends import BACKENDS, open_backend
from oracle.naive import PROFILES
from oracle.schema import Task
from oracle.task_check import ACCEPTED, BROKEN, INAPPLICABLE, NAMES, REJECTED, Finding, TaskCheck, check_task
from oracle.validation import Bench
from oracle.verdict import PASS

SHOWN = {ACCEPTED: "PASSES", BROKEN: "BROKEN", INAPPLICABLE: "–"}
WHATEVER_RUNS = {name for name, profile in PROFILES.items() if profile.rule == "runs"}


def register(app: typer.Typer) -> None:
    commands.command("check")(check)


def check(
    globs: Annotated[str, typer.Argument(metavar="[GLOBS]", help="Comma-separated globs over task ids.")] = "*",
    as_json: AsJson = False,
    backend: Annotated[str, typer.Option(help=f"{', '.join(BACKENDS)}.")] = "auto",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Tasks checked side by side [cores].")] = None,
    task_dir: TaskDirs = None,
    allow_unsafe: Annotated[bool, typer.Option(help="Run even where files and network cannot be blocked.")] = False,
) -> None:
    """Check tasks: zeros, constants, copies of an input and sums in half precision must fail. Exit code 1 if one passes
    or a task contradicts itself."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers must be at least 1, not {workers}")
    known = load_tasks(task_dir or [])
    tasks = find_tasks(globs, known, "GLOBS")
    announce(f"starting the judge, backend {backend}")
    engine = open_backend(backend, allow_unsafe=allow_unsafe)
    started = time.monotonic()
    try:
        checks, owed = _checked(Bench(engine, known), tasks, workers or len(os.sched_getaffinity(0)))
    finally:
        engine.close()
    seconds = round(time.monotonic() - started, 1)
    if as_json:
        print(json.dumps(summary(checks, engine.name, seconds)))
    else:
        _print(checks, seconds, Console())
    if not all(found.holds for found in checks):
        sys.exit(EXIT_FAIL)
    if owed:
        sys.exit(EXIT_INFRASTRUCTURE)


def _checked(bench: Bench, tasks: Sequence[Task], workers: int) -> tuple[list[TaskCheck], int]:
    """The checks in the order of the tasks, and how many could not be made; progress and trouble go to stderr."""
    found: dict[str, TaskCheck] = {}
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(check_task, bench, task): task for task in tasks}
        try:
            for done, future in enumerate(as_completed(running), 1):
                task = running[future]
                try:
                    found[task.id] = future.result()
                    state = "holds" if found[task.id].holds else "does NOT hold"
                    print(f"{done}/{len(tasks)} {task.id} {state}", file=sys.stderr, flush=True)
                except InfrastructureError as error:
                    print(f"{done}/{len(tasks)} {task.id} not checked: {error}", file=sys.stderr, flush=True)
        except BaseException:  # interrupted: what has not begun is not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[task.id] for task in tasks if task.id in found], len(tasks) - len(found)


def summary(checks: Sequence[TaskCheck], backend: str, seconds: float) -> dict[str, Any]:
    """What `--json` prints. `accepted`: by profile and stand-in, the tasks on which the oracle fails it and it passes."""
    return {
        "backend": backend,
        "tasks": [{**asdict(found), "holds": found.holds} for found in checks],
        "holding": sum(found.holds for found in checks),
        "measured": {name: len(_measured(checks, name)) for name in NAMES},
        "accepted": {profile: {name: _accepted(checks, profile, name) for name in NAMES} for profile in PROFILES},
        "seconds": seconds,
    }


def _measured(checks: Sequence[TaskCheck], name: str) -> list[str]:
    """Tasks on which the naive checks were asked about a stand-in."""
    return [found.task for found in checks if (seen := found.stand_ins.get(name)) and seen.naive]


def _accepted(checks: Sequence[TaskCheck], profile: str, name: str) -> list[str]:
    return [
        found.task
        for found in checks
        if (seen := found.stand_ins.get(name)) and seen.status == REJECTED and seen.naive.get(profile) == PASS
    ]


def _print(checks: Sequence[TaskCheck], seconds: float, console: Console) -> None:
    for name, meaning in NAMES.items():
        console.print(f"{name}: {meaning}", highlight=False, soft_wrap=True)
    table = Table("task", *NAMES, "a naive check passes", title="Where each stand-in fails")
    for found in checks:
        cells = [_cell(found.stand_ins.get(name)) for name in NAMES]
        table.add_row(found.task, *cells, _naive(found.stand_ins))
    console.print(table)
    for found in checks:
        wrong = [f"stand-in {name}: {f.reason}" for name, f in found.stand_ins.items() if f.status == ACCEPTED]
        for line in [*found.unsound, *wrong]:
            console.print(f"{found.task} does not hold: {line}", markup=False, highlight=False, soft_wrap=True)
    counts = Table("naive check", *NAMES, title="Tasks on which a naive check passes what the oracle fails")
    for profile in PROFILES:
        counts.add_row(profile, *(str(len(_accepted(checks, profile, name))) for name in NAMES))
    counts.add_row("of", *(str(len(_measured(checks, name))) for name in NAMES))
    console.print(counts)
    console.print(
        f"{sum(found.holds for found in checks)} of {len(checks)} tasks hold; {seconds:.0f} s", highlight=False
    )


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "?"
    if finding.status == REJECTED:
        return finding.tier or finding.reason
    return SHOWN.get(finding.status, f"? {finding.reason}")


def _naive(stand_ins: Mapping[str, Finding]) -> str:
    """Stand-ins that a naive check passes though they fail, the checks that pass whatever runs left out."""
    parts = []
    for name, finding in stand_ins.items():
        passing = [p for p, status in finding.naive.items() if status == PASS and p not in WHATEVER_RUNS]
        if passing and finding.status == REJECTED:
            parts.append(f"{name}: {', '.join(passing)}")
    return "; ".join(parts)
