"""`agentloop prompts`: which prompt strategies and feedback arms there are, and what exactly a request says."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agentloop.content import find_task, load_tasks
from agentloop.prompting import Prompter, list_arms, list_strategies

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
    prompt_dir: PromptDirs = None,
    task_dir: Annotated[list[Path] | None, typer.Option(help="A folder with more suites.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the messages that a first request sends, word for word."""
    prompt = Prompter(strategy, "none", prompt_dir or ()).first(find_task(task, load_tasks(task_dir or ())))
    if as_json:
        print(json.dumps(asdict(prompt)))
        return
    for message in prompt.messages:
        print(f"--- {message['role']}")
        print(message["content"])
    print(f"--- prompt {prompt.prompt_id}, tiers stated: {', '.join(prompt.tiers_stated)}")
