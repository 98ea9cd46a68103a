"""`agentloop rescore`: a run's stored candidates judged anew."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from agentloop.commands.report import RUN, RUNS_DIR
from agentloop.commands.run import _switch
from agentloop.config import Settings, option
from agentloop.store import find_run

NAMED = (
    "Folder of the new verdicts under --runs-dir; RUN-rescored and what is given anew, as RUN-rescored-7, unless given."
)


def register(app: typer.Typer) -> None:
    app.command("rescore")(rescore)


def _setting(name: str) -> Any:
    """The option of a setting that is the run's own unless given."""
    text = Settings.model_fields[name].description or ""
    return typer.Option(option(name), help=f"{text[0].upper()}{text[1:]}; as in RUN unless given.")


def rescore(
    run: RUN,
    tolerance: Annotated[str | None, _setting("tolerance")] = None,
    backend: Annotated[str | None, _setting("backend")] = None,
    domain: Annotated[str | None, _setting("domain")] = None,
    seed: Annotated[int | None, typer.Option(help="Master seed of the cases; candidates stay as they are.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Only these tasks: comma-separated globs over task ids.")] = None,
    task_dirs: Annotated[list[str] | None, _setting("task_dirs")] = None,
    name: Annotated[str, typer.Option(help=NAMED)] = "",
    runs_dir: RUNS_DIR = "runs",
    workers: Annotated[int | None, _setting("workers")] = None,
    speed: Annotated[bool | None, _switch("speed")] = None,
    allow_unsafe: Annotated[bool | None, _setting("allow_unsafe")] = None,
) -> None:
    """Judge a run's stored candidates anew, without asking any model, as a run of its own.

    What is not given is as in RUN. The same command again, or `agentloop resume`, goes on with one that was stopped.
    """
    given = {
        "tolerance": tolerance,
        "backend": backend,
        "domain": domain,
        "seed": seed,
        "tasks": tasks,
        "task_dirs": task_dirs or None,
        "workers": workers,
        "speed": speed,
        "allow_unsafe": allow_unsafe,
    }
    source = find_run(run, runs_dir)
    from agentloop import rescoring

    raise typer.Exit(rescoring.start(source, given, name, runs_dir, Console()))
