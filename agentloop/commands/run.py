"""`agentloop run`, `agentloop sweep` and `agentloop resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from agentloop import sweep as sweeps
from agentloop.config import Settings, load, option, parse_extra_body
from agentloop.store import find_run, read_config


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("sweep")(sweep)
    app.command("resume")(resume)


def _help(name: str) -> Any:
    """The option of a setting, with the setting's own description and default."""
    field = Settings.model_fields[name]
    default = field.get_default(call_default_factory=True)
    shown = f" [default: {default}]" if default not in (None, (), {}, "", False) else ""
    text = f"{field.description}{shown}".replace("[", "\\[")
    return typer.Option(option(name), help=text[0].upper() + text[1:], show_default=False)


def _switch(name: str) -> Any:
    """The same for a setting that is on, off or not given."""
    text = str(Settings.model_fields[name].description)
    both = f"{option(name)}/--no-{option(name).removeprefix('--')}"
    return typer.Option(both, help=text[0].upper() + text[1:], show_default=False)


def run(
    model: Annotated[str | None, _help("model")] = None,
    label: Annotated[str | None, _help("label")] = None,
    base_url: Annotated[str | None, _help("base_url")] = None,
    key_variable: Annotated[str | None, _help("key_variable")] = None,
    tasks: Annotated[str | None, _help("tasks")] = None,
    task_dirs: Annotated[list[str] | None, _help("task_dirs")] = None,
    prompt_strategy: Annotated[str | None, _help("prompt_strategy")] = None,
    prompt_dirs: Annotated[list[str] | None, _help("prompt_dirs")] = None,
    feedback: Annotated[str | None, _help("feedback")] = None,
    history: Annotated[str | None, _help("history")] = None,
    prompt_tokens: Annotated[int | None, _help("prompt_tokens")] = None,
    samples: Annotated[int | None, _help("samples")] = None,
    rounds: Annotated[int | None, _help("rounds")] = None,
    temperature: Annotated[float | None, _help("temperature")] = None,
    top_p: Annotated[float | None, _help("top_p")] = None,
    max_tokens: Annotated[int | None, _help("max_tokens")] = None,
    timeout: Annotated[float | None, _help("timeout")] = None,
    tries: Annotated[int | None, _help("tries")] = None,
    extra_body: Annotated[str | None, _help("extra_body")] = None,
    backend: Annotated[str | None, _help("backend")] = None,
    tolerance: Annotated[str | None, _help("tolerance")] = None,
    domain: Annotated[str | None, _help("domain")] = None,
    seed: Annotated[int | None, _help("seed")] = None,
    stop: Annotated[str | None, _help("stop")] = None,
    name: Annotated[str | None, _help("name")] = None,
    runs_dir: Annotated[str | None, _help("runs_dir")] = None,
    concurrency: Annotated[int | None, _help("concurrency")] = None,
    requests_per_minute: Annotated[float | None, _help("requests_per_minute")] = None,
    workers: Annotated[int | None, _help("workers")] = None,
    speed: Annotated[bool | None, _switch("speed")] = None,
    sanitize: Annotated[int | None, _help("sanitize")] = None,
    budget_requests: Annotated[int | None, _help("budget_requests")] = None,
    budget_tokens: Annotated[int | None, _help("budget_tokens")] = None,
    budget_money: Annotated[float | None, _help("budget_money")] = None,
    prices: Annotated[str | None, _help("prices")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings; the command line wins.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and do nothing.")] = False,
    allow_unsafe: Annotated[bool | None, _help("allow_unsafe")] = None,
) -> None:
    """Ask a model for kernels, judge them, tell it what failed, record everything."""
    given = {key: value for key, value in locals().items() if key in Settings.model_fields}
    given["extra_body"] = parse_extra_body(extra_body)
    settings = load(config, {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    _go((settings,), dry_run)


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML of settings; models, strategies, arms as lists.")],
    name: Annotated[str | None, _help("name")] = None,
    runs_dir: Annotated[str | None, _help("runs_dir")] = None,
    backend: Annotated[str | None, _help("backend")] = None,
    workers: Annotated[int | None, _help("workers")] = None,
    speed: Annotated[bool | None, _switch("speed")] = None,
    sanitize: Annotated[int | None, _help("sanitize")] = None,
    budget_requests: Annotated[int | None, _help("budget_requests")] = None,
    budget_tokens: Annotated[int | None, _help("budget_tokens")] = None,
    budget_money: Annotated[float | None, _help("budget_money")] = None,
    prices: Annotated[str | None, _help("prices")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and do nothing.")] = False,
    allow_unsafe: Annotated[bool | None, _help("allow_unsafe")] = None,
) -> None:
    """Run every combination of models, prompt strategies and feedback arms that a file lists, in one run folder."""
    given = {key: value for key, value in locals().items() if key in Settings.model_fields}
    _go(sweeps.read(file, given), dry_run, file)


def _go(conditions: sweeps.Conditions, dry_run: bool, source: Path | None = None) -> None:
    if dry_run:
        from agentloop import forecast

        forecast.tell(conditions, Console())
        return
    from agentloop import session

    raise typer.Exit(session.start(conditions, Console(), source))


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's name under --runs-dir, or its path.")],
    runs_dir: Annotated[str, typer.Option(help="Folder of run folders.")] = "runs",
    concurrency: Annotated[int | None, _help("concurrency")] = None,
    requests_per_minute: Annotated[float | None, _help("requests_per_minute")] = None,
    workers: Annotated[int | None, _help("workers")] = None,
    speed: Annotated[bool | None, _switch("speed")] = None,
    sanitize: Annotated[int | None, _help("sanitize")] = None,
    timeout: Annotated[float | None, _help("timeout")] = None,
    tries: Annotated[int | None, _help("tries")] = None,
    key_variable: Annotated[str | None, _help("key_variable")] = None,
    budget_requests: Annotated[int | None, _help("budget_requests")] = None,
    budget_tokens: Annotated[int | None, _help("budget_tokens")] = None,
    budget_money: Annotated[float | None, _help("budget_money")] = None,
    prices: Annotated[str | None, _help("prices")] = None,
) -> None:
    """Go on with a run that was stopped or killed, or that is owed attempts."""
    changes = {key: value for key, value in locals().items() if key in Settings.model_fields and key != "runs_dir"}
    path = find_run(run, runs_dir)
    if read_config(path).get("rescored") is not None:
        from agentloop import rescoring

        raise typer.Exit(rescoring.resume(path, {"workers": workers, "speed": speed}, Console()))
    from agentloop import session

    raise typer.Exit(session.resume(path, changes, Console()))
