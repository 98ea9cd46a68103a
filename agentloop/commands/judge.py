"""`agentloop judge` and `agentloop replay`: is this kernel file right?"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from agentloop.content import find_task, load_tasks
from agentloop.errors import EXIT_FAIL, EXIT_INFRASTRUCTURE, UsageError
from agentloop.files import read_regular
from agentloop.progress import announce
from agentloop.report.counterexample import counterexample_lines
from agentloop.speeds import speed_words
from oracle.backends import open_backend
from oracle.case import TOKEN_LIMIT, Replay
from oracle.judge import Judge, diagnosis, shown_inputs, shown_outputs
from oracle.sanitizer import check_sanitizer
from oracle.schema import DOMAINS, Task
from oracle.speed import Speed, Stopwatch, check_backend
from oracle.static import check_source
from oracle.tolerance import RULES, check_covered
from oracle.verdict import FAIL, PASS, UNJUDGED, Verdict, candidate_id

BACKENDS = ("auto", "interpreter", "cuda")
SOURCE_BYTES = 4 << 20


def register(app: typer.Typer) -> None:
    app.command("judge")(judge)
    app.command("replay")(replay)


def judge(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The kernel file; it must define the task's function.")],
    task: Annotated[str, typer.Option(metavar="T", help="Task id or bare name, e.g. ops/softmax.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    domain: Annotated[str, typer.Option(help="core or full: which tiers decide.")] = "full",
    cases: Annotated[int, typer.Option(help="At most this many cases per dtype.")] = 40,
    seed: Annotated[int, typer.Option(help="Master seed of the cases.")] = 0,
    backend: Annotated[str, typer.Option(help="auto, interpreter or cuda.")] = "auto",
    tolerance: Annotated[str, typer.Option(help="derived, paper or calibrated.")] = "derived",
    task_dir: Annotated[list[Path] | None, typer.Option(help="A folder with more suites.")] = None,
    speed: Annotated[bool, typer.Option("--speed", help="Time it against eager PyTorch, on a GPU.")] = False,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Run it under compute-sanitizer too if it passes, on a GPU.")
    ] = False,
    allow_unsafe: Annotated[bool, typer.Option(help="Run even where files and network cannot be blocked.")] = False,
) -> None:
    """Judge one kernel file: exit code 0 pass, 1 fail, 3 unjudged."""
    check_option("--domain", domain, tuple(DOMAINS))
    check_option("--backend", backend, BACKENDS)
    check_option("--tolerance", tolerance, tuple(RULES))
    if speed:
        check_backend(backend)
    if cases < 1:
        raise UsageError(f"--cases must be at least 1, not {cases}")
    source = read_source(file)
    found = find_task(task, load_tasks(task_dir or []))
    check_covered(tolerance, [found])
    announce(f"starting the judge, backend {backend}")
    engine = open_backend(backend, allow_unsafe=allow_unsafe)
    try:
        if sanitize:
            check_sanitizer(engine.name)
        oracle = Judge(engine, tolerance=tolerance, domain=domain, seed=seed, limit=cases, sanitize=int(sanitize))
        if speed:
            check_backend(engine.name)
        verdict = oracle.judge(found, source)
        timed = _time(oracle, found, source, verdict) if speed else None
    finally:
        engine.close()
    token_file = store_long_token(verdict)
    if as_json:
        print(json.dumps(verdict.to_json() | {"speed": timed.to_json() if timed else None}))
    else:
        _show(Console(), verdict, found, file, token_file)
        if timed:
            Console().print(f"speed: {speed_words(timed)}", markup=False, highlight=False, soft_wrap=True)
    if verdict.status == FAIL:
        sys.exit(EXIT_FAIL)
    if verdict.status == UNJUDGED:
        sys.exit(EXIT_INFRASTRUCTURE)


def _time(oracle: Judge, task: Task, source: str, verdict: Verdict) -> Speed | None:
    """The time of a candidate that the oracle or a naive check passes."""
    passes = verdict.status == PASS or any(result.status == PASS for result in verdict.naive.values())
    return Stopwatch(oracle).time(task, source) if passes else None


def replay(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="As printed by judge, or a counterexamples/ID.json.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The kernel file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    backend: Annotated[str | None, typer.Option(help="Default: the backend that the token names.")] = None,
    task_dir: Annotated[list[Path] | None, typer.Option(help="A folder with more suites.")] = None,
    allow_unsafe: Annotated[bool, typer.Option(help="Run even where files and network cannot be blocked.")] = False,
) -> None:
    """Run one counterexample again in a fresh process: exit code 0 if it passes now, 1 if it still fails."""
    again = Replay.from_token(read_token(token))
    check_option("--backend", backend or again.backend, BACKENDS)
    source = read_source(file)
    found = find_task(again.case.task, load_tasks(task_dir or []), "TOKEN: task")
    announce(f"starting the judge, backend {backend or again.backend}")
    engine = open_backend(backend or again.backend, allow_unsafe=allow_unsafe)
    try:
        trial = Judge(engine, tolerance=again.tolerance).replay(found, source, again)
    finally:
        engine.close()
    failure = check_source(source) or trial.failure
    shown: dict[str, Any] = {
        "task": found.id,
        "candidate": candidate_id(source),
        "backend": engine.name,
        "status": "fail" if failure else "pass",
        "failure": failure.to_json() if failure else None,
        "case": trial.case.to_json(),
        "input_digest": trial.inputs.digest,
        "inputs": shown_inputs(trial.inputs),
        "got": shown_outputs(trial, "got"),
        "expected": shown_outputs(trial, "expected"),
        "stats": dict(trial.comparison.stats) if trial.comparison else {},
        "diagnosis": diagnosis(trial, found),
    }
    if as_json:
        print(json.dumps(shown))
    else:
        console = Console()
        console.print(f"{found.id}  [bold]{shown['status'].upper()}[/]  input {trial.inputs.digest}")
        if failure:
            console.print(f"{failure.kind}: {failure.message}", markup=False, highlight=False)
        _show_lines(console, counterexample_lines(shown, found))
    if failure:
        sys.exit(EXIT_FAIL)


def check_option(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """UsageError naming the option and what it may be."""
    if value not in allowed:
        raise UsageError(f"{option} must be one of {', '.join(allowed)}, not {value!r}")


def read_source(file: Path) -> str:
    """The text of a kernel file. Bytes that are not UTF-8 come back as lone surrogates: the oracle says which line it is."""
    try:
        data = read_regular(file, SOURCE_BYTES)
    except OSError as error:
        raise UsageError(
            f"FILE {str(file)!r} cannot be read: {error.strerror}; name the file that holds the kernel"
        ) from None
    return data.decode("utf-8-sig", "surrogateescape")


def read_token(token: str) -> str:
    """A token as given, or the one in a counterexample's file."""
    token = token.strip()
    if not token.endswith(".json"):
        return token
    try:
        return str(json.loads(read_regular(Path(token), SOURCE_BYTES))["token"])
    except OSError as error:
        raise UsageError(
            f"TOKEN file {token!r} cannot be read: {error.strerror}; name a counterexamples/ID.json, or give the token"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"TOKEN file {token!r} is not a counterexample written by agentloop") from None


def store_long_token(verdict: Verdict) -> Path | None:
    """A token over 4 KB goes to counterexamples/ID.json beside the user; returns that path, None where it stays as it is:
    it is short, or nothing can be written here."""
    example = verdict.counterexample
    if example is None or len(example.token) <= TOKEN_LIMIT:
        return None
    path = Path("counterexamples") / f"{verdict.candidate}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(example.to_json()))
    except OSError:
        return None
    return path


def _show(console: Console, verdict: Verdict, task: Task, file: Path, token_file: Path | None) -> None:
    colour = {"pass": "green", "fail": "red"}.get(verdict.status, "yellow")
    console.print(
        f"{verdict.task}  [bold {colour}]{verdict.status.upper()}[/]  "
        f"({verdict.domain} domain, {verdict.backend}, {verdict.cases_run} cases, {verdict.seconds:.1f} s)"
    )
    table = Table(show_header=True, box=None, pad_edge=False)
    for heading in ("tier", "status", "why"):
        table.add_column(heading)
    for tier, status in verdict.tiers.items():
        failure = verdict.failures.get(tier)
        table.add_row(tier, status, f"{failure.kind}: {failure.message}" if failure else "")
    for name, result in verdict.naive.items():
        table.add_row(f"naive {name}", result.status, result.reason)
    console.print(table, markup=False)
    illusions = [name for name, wrong in verdict.illusion.items() if wrong]
    if illusions:
        console.print(f"illusion: passes {', '.join(illusions)}, yet wrong")
    for note in verdict.notes:
        console.print(f"note: {note}", markup=False)
    failure, example = verdict.failure, verdict.counterexample
    if failure is not None and failure.detail:
        console.print(failure.detail.rstrip(), markup=False, highlight=False)
    if example is not None:
        console.print(f"counterexample, shrunk by {example.executions} executions:")
        _show_lines(console, counterexample_lines(example.to_json(), task))
        command = shlex.join(["agentloop", "replay", str(token_file or example.token), str(file)])
        console.print(f"replay: {command}", soft_wrap=True, markup=False, highlight=False)


def _show_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
