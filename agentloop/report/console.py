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
    """Rows: naive profile × tier set; round 0. The share is P(oracle fails | naive passes) with its 95% interval."""
    title = "naive check against oracle at round 0: pass/fail of the naive check, then of the oracle"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("profile", "tiers"):
        table.add_column(heading, no_wrap=True)
    for heading in ("p/p", "p/f", "silent", "f/p", "f/f", "oracle fails | naive passes"):
        table.add_column(heading, justify="right", no_wrap=True)
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
    """Solved by round (score verdict over the stated tiers) per model, strategy and arm: one row a round."""
    table = Table(title="solved by round", title_justify="left", box=None, pad_edge=False)
    for heading in ("model · strategy · feedback", "round"):
        table.add_column(heading, no_wrap=True)
    table.add_column("solved, 95%", justify="right", no_wrap=True)
    table.add_column("")
    for name, arm in repair.items():
        for point in arm["solved_by_round"]:
            bar = "█" * round(20 * (point["value"] or 0))
            table.add_row(escape(name) if point["round"] == 0 else "", str(point["round"]), percent(point), bar)
    return table


def percent(estimate: dict[str, Any]) -> str:
    """An estimate as text: "62% [31, 86] of 8"; "–" where nothing was observed."""
    if estimate["value"] is None:
        return "–"
    low, high = 100 * estimate["low"], 100 * estimate["high"]
    return f"{100 * estimate['value']:.0f}% [{low:.0f}, {high:.0f}] of {estimate['n']}"
