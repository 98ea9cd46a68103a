"""`agentloop report`, `show` and `export`: what a run found."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from agentloop import report as reports
from agentloop.errors import EXIT_FAIL, UsageError
from agentloop.records import Attempt
from agentloop.report.console import print_summary
from agentloop.report.words import replay_command
from agentloop.scoring import load_attempts
from agentloop.store import find_run, read_config

RUN = Annotated[str, typer.Argument(metavar="RUN", help="A name under --runs-dir, or a path.")]
RUNS_DIR = Annotated[str, typer.Option(help="Folder of runs.")]


def register(app: typer.Typer) -> None:
    app.command("report")(report)
    app.command("show")(show)
    app.command("export")(export)


def report(
    run: RUN,
    html: Annotated[Path | None, typer.Option(help="Write the page here and not into the run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit 1 if the share of tasks solved at the last round is below this, 0 to 1.")
    ] = None,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """Compute a run's figures again, write summary.json and the page, print the tables."""
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise UsageError(f"--fail-under must be between 0 and 1, not {fail_under:g}")
    path = find_run(run, runs_dir)
    summary, page = reports.write(path, html)
    if as_json:
        print(json.dumps(summary))
    else:
        print_summary(path, summary)
        print(f"page: {page}")
    if fail_under is not None and solved_share(summary) < fail_under:
        sys.exit(EXIT_FAIL)


def solved_share(summary: dict[str, Any]) -> float:
    """Share of (task, arm) solved at the last round over the stated tiers, samples averaged within; 0 of nothing."""
    rows = [row for arms in summary["tasks"].values() for row in arms.values()]
    return sum(row["solved_last"] / row["samples"] for row in rows) / len(rows) if rows else 0.0


def show(
    run: RUN,
    episode: Annotated[str | None, typer.Argument(metavar="EPISODE", help="An episode's id, or part of it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the attempts as JSON lines.")] = False,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """List a run's episodes, or show the attempts of one."""
    path = find_run(run, runs_dir)
    attempts = load_attempts(path)
    if episode is not None:
        attempts = [attempt for attempt in attempts if episode in attempt.episode_id]
        if not attempts:
            raise UsageError(f"EPISODE {episode!r} matches none; `agentloop show {run}` lists them")
    if as_json:
        for attempt in attempts:
            print(attempt.model_dump_json())
        return
    console = Console()
    if episode is None:
        console.print(_overview(attempts), markup=False)
        return
    for attempt in attempts:
        _show_attempt(console, path, attempt)


def _overview(attempts: list[Attempt]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("episode", "rounds", "stated tiers", "full", "kernelbench", "failure"):
        table.add_column(heading)
    episodes: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        episodes.setdefault(attempt.episode_id, []).append(attempt)
    for name, group in sorted(episodes.items()):
        last = max(group, key=lambda a: a.round)
        failure = last.score.failure if last.score else None
        table.add_row(
            name,
            str(len(group)),
            " → ".join(a.status_stated for a in sorted(group, key=lambda a: a.round)),
            last.status,
            last.naive.get("kernelbench", {}).get("status", "–"),
            f"{failure['kind']} ({failure['tier']})" if failure else "",
        )
    return table


def _show_attempt(console: Console, path: Path, attempt: Attempt) -> None:
    console.rule(f"{attempt.attempt_id}: {attempt.status_stated} over stated tiers, {attempt.status} over all")
    for tier, status in attempt.score.tiers.items() if attempt.score else ():
        failure = attempt.score.failures.get(tier) if attempt.score else None
        console.print(
            f"{tier:12} {status:9} {failure['kind'] + ': ' + failure['message'] if failure else ''}", markup=False
        )
    for profile, result in attempt.naive.items():
        console.print(f"naive {profile:15} {result['status']:9} {result['reason']}", markup=False)
    if attempt.candidate_id:
        source = path / "candidates" / f"{attempt.candidate_id}.py"
        console.print(f"candidate: {source}", markup=False)
    example = attempt.score.counterexample if attempt.score else None
    if example:
        for key in ("case", "inputs", "got", "expected", "diagnosis"):
            if example.get(key) is not None:
                console.print(f"{key}: {json.dumps(example[key])[:1500]}", markup=False, highlight=False)
    command = replay_command(path, attempt, read_config(path))
    if command:
        console.print(f"replay: {command}", soft_wrap=True, markup=False, highlight=False)


EXPORTED = (
    "attempt_id", "episode_id", "model", "author", "prompt_strategy", "feedback", "task", "sample", "round", "status",
    "status_stated", "candidate_id", "backend", "domain", "tolerance", "seed",
)  # fmt: skip


def export(
    run: RUN,
    output_format: Annotated[str, typer.Option("--format", help="csv or jsonl.")] = "csv",
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """Print a run's attempts: CSV with one column per figure, or the records as JSON lines."""
    if output_format not in ("csv", "jsonl"):
        raise UsageError(f"--format must be csv or jsonl, not {output_format!r}")
    attempts = load_attempts(find_run(run, runs_dir))
    if output_format == "jsonl":
        for attempt in attempts:
            print(attempt.model_dump_json())
        return
    profiles = sorted({profile for attempt in attempts for profile in attempt.naive})
    tiers = sorted({tier for attempt in attempts if attempt.score for tier in attempt.score.tiers})
    writer = csv.writer(sys.stdout)
    writer.writerow(
        [*EXPORTED, "failure_kind", "failure_tier", *(f"naive_{p}" for p in profiles), *(f"tier_{t}" for t in tiers)]
    )
    for attempt in attempts:
        failure = (attempt.score.failure if attempt.score else None) or {}
        writer.writerow(
            [
                *(getattr(attempt, field) for field in EXPORTED),
                failure.get("kind", ""),
                failure.get("tier", ""),
                *(attempt.naive.get(profile, {}).get("status", "") for profile in profiles),
                *((attempt.score.tiers.get(tier, "") if attempt.score else "") for tier in tiers),
            ]
        )
