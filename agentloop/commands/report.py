"""`agentloop report` and `agentloop export`: what a run found, for readers and for programs."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentloop import report as reports
from agentloop.commands.judge import check_option
from agentloop.errors import EXIT_FAIL, UsageError
from agentloop.export import json_lines, table, with_speed, with_texts
from agentloop.files import refuse_unusable, unwritable
from agentloop.report.console import print_summary
from agentloop.scoring import load_records, solved_share
from agentloop.store import find_run

RUN = Annotated[str, typer.Argument(metavar="RUN", help="A name under --runs-dir, or a path.")]
RUNS_DIR = Annotated[str, typer.Option(help="Folder of runs.")]
FORMATS = ("csv", "jsonl")


def register(app: typer.Typer) -> None:
    app.command("report")(report)
    app.command("export")(export)


def report(
    run: RUN,
    html: Annotated[Path | None, typer.Option(help="Write the page here, and nothing into the run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(
            help="Exit 1 if the share of tasks solved at the last round (score verdict, stated tiers, samples and "
            "conditions averaged; what is planned and not answered yet is not solved) is below this, 0 to 1."
        ),
    ] = None,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """Compute a run's figures again, print the tables, write summary.json and the page into the run, or --html FILE."""
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise UsageError(f"--fail-under must be between 0 and 1, not {fail_under:g}")
    if html is not None:
        refuse_unusable("--html", html)
    path = find_run(run, runs_dir)
    if html is None and (reason := unwritable(path)):
        raise UsageError(f"{reason}; `--html FILE` writes the page elsewhere and leaves the run as it is")
    summary, page = reports.write(path, html)
    if as_json:
        print(json.dumps(summary))
    else:
        print_summary(path, summary)
        print(f"page: {page}")
    if fail_under is not None and (share := solved_share(summary)) < fail_under:
        print(f"solved at the last round: {share:.4g}, below --fail-under {fail_under:g}", file=sys.stderr)
        sys.exit(EXIT_FAIL)


def export(
    run: RUN,
    output_format: Annotated[str, typer.Option("--format", help="csv or jsonl.")] = "csv",
    texts: Annotated[bool, typer.Option("--texts", help="Also what was said: messages, answer, source.")] = False,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """Print a run's attempts, every figure of each: CSV with a column per figure, or JSON lines as recorded."""
    check_option("--format", output_format, FORMATS)
    path = find_run(run, runs_dir)
    records = with_speed(path, load_records(path))
    if texts:
        records = [with_texts(path, record) for record in records]
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")  # type: ignore[union-attr]
    if output_format == "jsonl":
        sys.stdout.writelines(f"{line}\n" for line in json_lines(records))
        return
    columns, rows = table(records)
    csv.writer(sys.stdout).writerows([columns, *rows])
