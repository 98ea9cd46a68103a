"""`agentloop compare`: which of several runs, or of a run's conditions, solves more."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.console import Console

from agentloop.commands.judge import check_option
from agentloop.commands.report import RUNS_DIR
from agentloop.comparison import MEASURES, across, families, unlike
from agentloop.errors import UsageError
from agentloop.records import Attempt
from agentloop.report.console import SIMULATION, print_comparison
from agentloop.scoring import SIMULATED, load_attempts
from agentloop.store import find_run


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Names under --runs-dir, or paths.")],
    answers: Annotated[
        str, typer.Option(help="first or last: whether the first or the last answers are compared.")
    ] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """Compare runs task by task: paired differences, intervals, sign-flip p, adjusted for being several.

    Conditions that several runs share (model, prompt strategy, feedback arm) are compared run by run; runs that share none
    are compared as they are. One run alone: its arms, prompt strategies and models are compared.
    """
    check_option("--answers", answers, tuple(MEASURES))
    attempts = _load(runs, runs_dir)
    if len(attempts) == 1:
        found, left_out = families(next(iter(attempts.values()))), list[str]()
        if not found:
            raise UsageError(
                f"RUN {runs[0]!r} has one condition alone: name two runs or more, or one that compares some"
            )
    else:
        found, left_out = across(attempts, answers)
    if not any(family["pairs"] for family in found):
        raise UsageError("the runs have nothing in common: no unchanged task in all of them over a tier that all state")
    differing = unlike(attempts)
    if as_json:
        print(json.dumps({"runs": list(attempts), "judged_unlike": differing, "left_out": left_out, "families": found}))
        return
    console = Console()
    if any(attempt.author in SIMULATED for group in attempts.values() for attempt in group):
        console.print(f"[bold yellow]{SIMULATION}[/]")
    for line in differing:
        console.print(f"judged unlike: {line}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    print_comparison(console, found)
    if left_out:
        console.print(
            f"in one run alone, left out: {', '.join(left_out)}", markup=False, highlight=False, soft_wrap=True
        )


def _load(runs: list[str], runs_dir: str) -> dict[str, list[Attempt]]:
    """Attempts by what a run is called here: its folder's name, or its path where two are named alike."""
    paths = [find_run(run, runs_dir) for run in runs]
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise UsageError("RUN is given twice: name each run once")
    alike = len({path.name for path in paths}) < len(paths)
    found = {str(path) if alike else path.name: load_attempts(path) for path in paths}
    for name, attempts in found.items():
        if not attempts:
            raise UsageError(f"RUN {name!r} has no attempt yet: `agentloop resume {name}`")
    return found
