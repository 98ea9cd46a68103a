"""`agentloop tasks`: what can be asked for, and all that a task states and is judged by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from agentloop.content import find_task, find_tasks, load_tasks
from oracle.schema import Form, Keyword, Task

TaskDirs = Annotated[list[Path] | None, typer.Option("--task-dir", metavar="DIR", help="A folder with more suites.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

commands = typer.Typer(no_args_is_help=True, help="List, show or check tasks.")


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="tasks")


@commands.command("list")
def list_tasks(
    globs: Annotated[str, typer.Argument(metavar="[GLOBS]", help="Comma-separated globs over task ids.")] = "*",
    as_json: AsJson = False,
    task_dir: TaskDirs = None,
) -> None:
    """List tasks with their signatures and forms (`--json`: dtypes and tiers too)."""
    tasks = find_tasks(globs, load_tasks(task_dir or []), "GLOBS")
    if as_json:
        print(json.dumps([_line(task) for task in tasks]))
        return
    table = Table(Column("task", no_wrap=True, overflow="ignore"), "signature", "forms", title=f"{len(tasks)} tasks")
    for task in tasks:
        line = _line(task)
        table.add_row(line["id"], line["signature"], ", ".join(line["forms"]))
    Console().print(table)


@commands.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="T", help="Task id or bare name, e.g. ops/softmax.")],
    as_json: AsJson = False,
    task_dir: TaskDirs = None,
) -> None:
    """Show one task: its contract, the inputs it is judged with, and what its tolerance rests on."""
    task = find_task(name, load_tasks(task_dir or []), "T")
    if as_json:
        print(json.dumps(describe(task)))
    else:
        _print(task, Console())


def tiers(task: Task) -> list[str]:
    """The tiers that a task can have cases in, in their order; `portability` is every task's and left out."""
    options = [
        *(keyword.values for keyword in task.keywords),
        *(v for f in task.forms for v in f.keyword_values.values()),
    ]
    has = {
        "base": True,
        "shapes": any(set(dim.values) - {dim.base} for dim in task.dims.values()),
        "dtypes": len(task.dtypes) > 1,
        "values": bool(task.regimes),
        "keywords": any(options),
        "empty": any(dim.empty for dim in task.dims.values()),
        "layouts": bool(task.layouts),
    }
    return [tier for tier, present in has.items() if present or any(form.tier == tier for form in task.forms[1:])]


def describe(task: Task) -> dict[str, Any]:
    """All that a task states, as JSON; functions by whether they are there."""
    published = task.published
    return {
        **_line(task),
        "contract": task.contract,
        "dims": {
            name: {"values": list(dim.values), "base": dim.base, "naive": task.naive_dims()[name], "empty": dim.empty}
            for name, dim in task.dims.items()
        },
        "tensors": {form.name: [_tensor(form, i) for i in range(len(form.tensors))] for form in task.forms},
        "keywords": [{"name": k.name, "default": k.default, "values": list(k.values)} for k in task.keywords],
        "outputs": [
            {"name": out.name, "dtype": out.dtype, "index": out.index, "contiguous": out.contiguous}
            for out in task.outputs
        ],
        "regimes": list(task.regimes),
        "layouts": list(task.layouts),
        "mutates": list(task.mutates),
        "tf32": task.tf32,
        "reduces": task.reduces,
        "tolerance": {name: _about(getattr(task, name)) for name in ("scale", "storage", "in_range", "pointed")},
        "hazards": list(task.hazards),
        "published": published
        and {
            "dims": {name: list(values) for name, values in published.dims.items()},
            "dtypes": list(published.dtypes),
            "range": [published.low, published.high],
            "atol": dict(published.atol),
        },
    }


def _line(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "signature": task.signature,
        "dtypes": list(task.dtypes),
        "tiers": tiers(task),
        "forms": [form.name for form in task.forms],
        "entry": task.entry,
        "digest": task.digest,
    }


def _tensor(form: Form, place: int) -> dict[str, Any]:
    tensor = form.tensors[place]
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype, "values": tensor.values}


def _about(function: Any) -> str | None:
    """What a tolerance input is: the first line of its docstring, or its name; None where the task states none."""
    if function is None:
        return None
    return (function.__doc__ or function.__name__).strip().splitlines()[0]


def _print(task: Task, console: Console) -> None:
    data = describe(task)
    console.print(f"[bold]{task.id}[/]  {task.signature}", highlight=False)
    console.print(task.contract, markup=False, highlight=False, soft_wrap=True)
    rows = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, dim in data["dims"].items():
        end = "; may be 0" if dim["empty"] else ""
        rows.add_row(f"dim {name}", f"base {dim['base']}, naive checks {dim['naive']}; {_join(dim['values'])}{end}")
    for form in task.forms:
        tensors = ", ".join(f"{t.name} {_shape(t.shape)}{f' {t.dtype}' if t.dtype else ''}" for t in form.tensors)
        rows.add_row(f"form {form.name}", tensors)
    for keyword in task.keywords:
        rows.add_row(f"keyword {keyword.name}", _keyword(keyword))
    for label in ("dtypes", "tiers", "regimes", "layouts", "mutates"):
        rows.add_row(label, _join(data[label]) or "none")
    for name, about in data["tolerance"].items():
        rows.add_row(name, about or {"scale": "|reference|", "in_range": "every element is judged"}.get(name, "none"))
    rows.add_row("TF32 products", "acceptable for float32" if task.tf32 else "not stated as acceptable")
    if task.published:
        sizes = "; ".join(f"{name} {_join(values)}" for name, values in task.published.dims.items())
        atol = ", ".join(f"{dtype} {value:g}" for dtype, value in task.published.atol.items())
        rows.add_row("published", f"{sizes}; in [{task.published.low:g}, {task.published.high:g}]; atol {atol}")
    for hazard in task.hazards:
        rows.add_row("hazard", hazard)
    rows.add_row("digest", task.digest)
    console.print(rows, markup=False, highlight=False)


def _keyword(keyword: Keyword) -> str:
    return f"{keyword.default!r}, or {_join(map(repr, keyword.values)) or 'nothing else'}"


def _shape(shape: tuple[str | int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _join(items: Any) -> str:
    return ", ".join(map(str, items))
