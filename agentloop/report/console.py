"""The tables that `run` ends with and `report` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentloop.scoring import summarize

SIMULATION = "SIMULATION: the author is a program that plants and mends mutations; no language model was asked."


def print_summary(run: Path, summary: dict[str, Any] | None = None, console: Console | None = None) -> None:
    """Print a run's tables: per model the disagreement and the tiers, then the repair curves."""
    console = console or Console()
    summary = summary or summarize(run)
    if summary["simulation"]:
        console.print(f"[bold yellow]{SIMULATION}[/]")
    for name, model in summary["models"].items():
        console.print(_heading(name, model))
        console.print(disagreement_table(model))
        console.print(tier_table(model))
    console.print(repair_table(summary["repair"]))
    requests = summary["requests"]
    console.print(
        f"{summary['attempts']} attempts, {summary['unjudged']} unjudged; requests: {requests['stored']} stored, "
        f"{requests['retries']} retries, {requests['failed']} failed, {requests['in_doubt']} in doubt"
    )


def _heading(name: str, model: dict[str, Any]) -> str:
    warning = f"  [yellow](only {model['tasks']} tasks: intervals are wide)[/]" if model["few_tasks"] else ""
    stated = ", ".join(model["tiers_stated"])
    return f"\n[bold]{escape(name)}[/]  {model['tasks']} tasks, {model['backend']}; prompt states {stated}{warning}"


def disagreement_table(model: dict[str, Any]) -> Table:
    """Rows: naive profile × tier set; round 0. Shares are P(oracle fails | naive passes), 95% interval."""
    table = Table(title="naive check against oracle, round 0", title_justify="left", box=None, pad_edge=False)
    for heading, justify in (
        ("profile", "left"),
        ("tiers", "left"),
        ("both pass", "right"),
        ("naive pass, oracle fail", "right"),
        ("(silent)", "right"),
        ("naive fail, oracle pass", "right"),
        ("both fail", "right"),
        ("oracle fails | naive passes", "right"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for profile, sets in model["disagreement"].items():
        for index, (name, figures) in enumerate(sets.items()):
            cells = figures["cells"]
            table.add_row(
                profile if index == 0 else "",
                name,
                str(cells["naive_pass_oracle_pass"]),
                str(figures["illusions"]),
                str(figures["silent"]),
                str(figures["strict_naive"]),
                str(cells["naive_fail_oracle_fail"]),
                percent(figures["p_oracle_fails_given_naive_passes"]),
            )
    return table


def tier_table(model: dict[str, Any]) -> Table:
    """Candidates per tier: pass, fail silently, fail loudly, unjudged."""
    table = Table(title="by tier", title_justify="left", box=None, pad_edge=False)
    for heading in ("tier", "pass", "silent", "loud", "unjudged"):
        table.add_column(heading, justify="left" if heading == "tier" else "right")
    for tier, counts in model["tiers"].items():
        table.add_row(tier, *(str(counts[key]) for key in ("pass", "silent", "loud", "unjudged")))
    return table


def repair_table(repair: dict[str, Any]) -> Table:
    """Solved by round (score verdict over the stated tiers) per model, strategy and arm."""
    rounds = max((len(arm["solved_by_round"]) for arm in repair.values()), default=0)
    table = Table(title="solved by round", title_justify="left", box=None, pad_edge=False)
    table.add_column("model · strategy · feedback")
    for r in range(rounds):
        table.add_column(f"round {r}", justify="right")
    for name, arm in repair.items():
        table.add_row(escape(name), *(percent(point) for point in arm["solved_by_round"]))
    return table


def percent(estimate: dict[str, Any]) -> str:
    """An estimate as text: "62.5% [30.6, 86.3] of 8"; "–" where nothing was observed."""
    if estimate["value"] is None:
        return "–"
    low, high = 100 * estimate["low"], 100 * estimate["high"]
    return f"{100 * estimate['value']:.1f}% [{low:.1f}, {high:.1f}] of {estimate['n']}"
