"""`agentloop show`: a run's episodes, or the story of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentloop.commands.report import RUN, RUNS_DIR
from agentloop.errors import UsageError
from agentloop.export import json_lines, with_texts
from agentloop.records import Attempt
from agentloop.report.console import whole
from agentloop.report.counterexample import counterexample_lines
from agentloop.report.words import replay_command
from agentloop.scoring import load_attempts
from agentloop.store import find_run, read_config


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    run: RUN,
    episode: Annotated[
        str | None, typer.Argument(metavar="EPISODE", help="An episode's or attempt's id, or part of it.")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Also print what was asked, the answer and the source.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the attempts as JSON lines.")] = False,
    runs_dir: RUNS_DIR = "runs",
) -> None:
    """List a run's episodes, or show every attempt of one: verdicts by tier, naive checks, counterexample, replay."""
    path = find_run(run, runs_dir)
    attempts = load_attempts(path)
    if episode is not None:
        attempts = _chosen(attempts, episode, run)
    if as_json:
        for line in json_lines(_record(path, attempt, texts) for attempt in attempts):
            print(line)
        return
    console = Console()
    if episode is None:
        whole(console, _overview(attempts))
        return
    config = read_config(path)
    for attempt in sorted(attempts, key=lambda a: (a.episode_id, a.round)):
        _show_attempt(console, path, config, attempt)
        if texts:
            _show_texts(console, with_texts(path, attempt.model_dump()))


def _chosen(attempts: list[Attempt], episode: str, run: str) -> list[Attempt]:
    """Those of exactly this id, else those whose id holds it."""
    exact = [attempt for attempt in attempts if episode in (attempt.episode_id, attempt.attempt_id)]
    found = exact or [attempt for attempt in attempts if episode in attempt.attempt_id]
    if not found:
        raise UsageError(f"EPISODE {episode!r} matches none; `agentloop show {run}` lists them")
    return found


def _record(path: Path, attempt: Attempt, texts: bool) -> dict[str, Any]:
    record = attempt.model_dump()
    return with_texts(path, record) if texts else record


def _overview(attempts: list[Attempt]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("episode", "rounds", "stated tiers", "full", "kernelbench", "failure"):
        table.add_column(heading)
    episodes: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        episodes.setdefault(attempt.episode_id, []).append(attempt)
    for name, group in sorted(episodes.items()):
        group.sort(key=lambda attempt: attempt.round)
        last = group[-1]
        failure = last.score.failure if last.score else None
        table.add_row(
            escape(name),
            str(len(group)),
            " → ".join(attempt.status_stated for attempt in group),
            last.status,
            last.naive.get("kernelbench", {}).get("status", "–"),
            f"{failure['kind']} ({failure['tier']})" if failure else "",
        )
    return table


def _show_attempt(console: Console, path: Path, config: dict[str, Any], attempt: Attempt) -> None:
    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    title = f"{attempt.attempt_id}: {attempt.status_stated} over stated tiers, {attempt.status} over all"
    console.print(f"── {title} ──", style="bold", markup=False, highlight=False, soft_wrap=True)
    if attempt.infrastructure_error:
        say(f"infrastructure: {attempt.infrastructure_error}")
    for tier, status in attempt.score.tiers.items() if attempt.score else ():
        failure = attempt.score.failures.get(tier) if attempt.score else None
        say(f"{tier:12} {status:9} {failure['kind'] + ': ' + failure['message'] if failure else ''}".rstrip())
    for profile, result in attempt.naive.items():
        say(f"naive {profile:15} {result['status']:9} {result['reason']}")
    for name, identity, suffix in (
        ("response", attempt.response_id, "json"),
        ("candidate", attempt.candidate_id, "py"),
    ):
        if identity:
            say(f"{name}: {path / f'{name}s' / f'{identity}.{suffix}'}")
    example = attempt.score.counterexample if attempt.score else None
    for line in counterexample_lines(example) if example else ():
        say(line)
    if command := replay_command(path, attempt, config):
        say(f"replay: {command}")


def _show_texts(console: Console, record: dict[str, Any]) -> None:
    parts = [(f"asked, {message.get('role')}", message.get("content")) for message in record["messages"] or ()]
    for title, text in (*parts, ("answer", record["answer"]), ("source", record["source"])):
        console.rule(escape(title), style="dim")
        console.print(str(text or "none"), markup=False, highlight=False, soft_wrap=True)
