"""`agentloop prompts`: which prompt strategies and feedback arms there are, and what exactly a request says."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agentloop import Prompt
from agentloop.commands.judge import read_source
from agentloop.content import find_task, load_tasks
from agentloop.errors import UsageError
from agentloop.progress import announce
from agentloop.prompting import Prompter, list_arms, list_strategies
from oracle.backends import open_backend
from oracle.judge import Judge
from oracle.schema import Task
from oracle.verdict import PASS

PromptDirs = Annotated[
    list[Path] | None, typer.Option("--prompt-dir", help="A folder with more strategies; its own come first.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Prompt strategies and feedback arms.")
    group.command("list")(list_prompts)
    group.command("render")(render)
    app.add_typer(group, name="prompts")


def list_prompts(prompt_dir: PromptDirs = None, as_json: AsJson = False) -> None:
    """List prompt strategies, with the tiers that each states, and feedback arms."""
    strategies = list_strategies(prompt_dir or ())
    arms = list_arms(prompt_dir or ())
    if as_json:
        shown = [asdict(strategy) | {"folder": str(strategy.folder)} for strategy in strategies]
        print(json.dumps({"strategies": shown, "feedback": arms}))
        return
    table = Table("prompt strategy", "tiers stated", "what it is")
    for strategy in strategies:
        table.add_row(strategy.name, " ".join(strategy.tiers_stated), strategy.description)
    other = Table("feedback arm", "what a failed attempt tells the author")
    for name, description in arms.items():
        other.add_row(name, description)
    console = Console()
    console.print(table)
    console.print(other)


def render(
    strategy: Annotated[
        str, typer.Argument(metavar="P", help="A prompt strategy; `agentloop prompts list` shows all.")
    ],
    task: Annotated[str, typer.Option(metavar="T", help="Task id or bare name, e.g. seed/softmax.")],
    feedback: Annotated[str, typer.Option(metavar="ARM", help="With --after: the feedback arm.")] = "minimized",
    after: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judge this kernel file, and show the request that would follow."),
    ] = None,
    prompt_dir: PromptDirs = None,
    task_dir: Annotated[list[Path] | None, typer.Option(help="A folder with more suites.")] = None,
    as_json: AsJson = False,
    allow_unsafe: Annotated[bool, typer.Option(help="Judge even where files and network cannot be blocked.")] = False,
) -> None:
    """Show the messages that a first request sends, word for word; with --after those of the request that follows it."""
    prompter, found = Prompter(strategy, feedback, prompt_dir or ()), find_task(task, load_tasks(task_dir or ()))
    prompt = prompter.first(found)
    if after is not None:
        following = _following(prompter, found, prompt, read_source(after), allow_unsafe)
        if following is None:
            raise UsageError(f"--after {after}: it passes the feedback cases, so that nothing more would be asked")
        prompt = following
    if as_json:
        print(json.dumps(asdict(prompt)))
        return
    for message in prompt.messages:
        print(f"--- {message['role']}")
        print(message["content"])
    print(f"--- prompt {prompt.prompt_id}, tiers stated: {', '.join(prompt.tiers_stated)}")


def _following(prompter: Prompter, task: Task, first: Prompt, source: str, allow_unsafe: bool) -> Prompt | None:
    """What a run with default settings asks after this source; None where it passes what its prompt states."""
    announce("starting the judge")
    backend = open_backend("auto", allow_unsafe=allow_unsafe)
    try:
        judge, forbidden = Judge(backend), frozenset(first.forbids)
        minimized = prompter.feedback == "minimized"
        told = judge.judge(task, source, stream="feedback", naive=False, minimized=minimized, forbid=forbidden)
        if told.status_over(first.tiers_stated) == PASS:
            return None
        naive = None
        if prompter.feedback == "naive":
            naive = judge.judge(task, source, minimized=False, forbid=forbidden).naive["kernelbench"]
    finally:
        backend.close()
    return prompter.next(task, first, "", source, told, naive)
