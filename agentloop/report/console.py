"""The tables that `run` ends with and that `report` and `compare` print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentloop.comparison import MEASURES
from agentloop.report.words import points, ranking
from agentloop.scoring import summarize
from agentloop.statistics import FEW_TASKS

LISTED = 5  # names in one line
SIMULATION = "SIMULATION: the author is a program that plants and mends mutations; no language model was asked."


def print_summary(run: Path, summary: dict[str, Any] | None = None, console: Console | None = None) -> None:
    """Print a run's tables: per model the disagreement, the tiers and the ability, then the rounds and what was compared."""
    console = console or Console()
    summary = summary or summarize(run)
    if summary["simulation"]:
        console.print(f"[bold yellow]{SIMULATION}[/]")
    for name, model in summary["models"].items():
        console.print(_heading(name, model))
        whole(console, disagreement_table(model))
        for line in _strict(model):
            _say(console, line)
        whole(console, tier_table(model))
        _say(console, _ability(model))
        if model["speed"]:
            whole(console, speed_table(model["speed"]))
        if found := model["sanitizer"]:
            wrong = ", ".join(found["errors"]) or "none"
            _say(
                console,
                f"compute-sanitizer looked at {found['looked']} survivors ({found['unclear']} without an answer); "
                f"memory errors in {len(found['errors'])}: {wrong}",
            )
    whole(console, repair_table(summary["repair"]))
    if any(arm["repaired"]["of"] for arm in summary["repair"].values()):
        whole(console, rates_table(summary["repair"]))
    if any(arm["independent"] for arm in summary["repair"].values()):
        whole(console, independent_table(summary["repair"]))
    for family in summary["comparison"]:
        _say(console, f"{comparison_title(family)}. {ranking(family)}")
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


def _strict(model: dict[str, Any]) -> list[str]:
    """Per naive check the answers that it fails and the oracle passes over the stated tiers."""
    lines = []
    for profile, sets in model["disagreement"].items():
        names = sets["stated"]["strict_naive_attempts"]
        if names:
            more = f" and {len(names) - LISTED} more: report --json" if len(names) > LISTED else ""
            lines.append(f"{profile} fails what the oracle passes: {', '.join(names[:LISTED])}{more}")
    return lines


def _ability(model: dict[str, Any]) -> str:
    """pass@k over the stated tiers, in one line."""
    found = [f"{at} {percent(value)}" for at, value in model["ability"]["stated"].items() if value["value"] is not None]
    return f"solved over the stated tiers, tasks averaged: {', '.join(found)}"


def speed_table(speed: dict[str, Any]) -> Table:
    """fast_p at each p, over what the oracle passes and what each naive check passes."""
    title = (
        f"fast_p: right, as this check says, and more than p times as fast as eager PyTorch; {speed['timed']} timed, "
        f"{speed['flagged']} of them not to be trusted, {speed['untimed']} untimed; {', '.join(speed['gpu'])}"
    )
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("right by", no_wrap=True)
    for p in next(iter(speed["fast_p"].values())):
        table.add_column(f"p = {p}", justify="right", no_wrap=True)
    table.add_column("fast (p = 1), yet not by the oracle", justify="right")
    for check, figures in speed["fast_p"].items():
        wrong = speed["fast_and_wrong"].get(check)
        table.add_row(check, *map(percent, figures.values()), "" if wrong is None else str(wrong))
    return table


def repair_table(repair: dict[str, Any]) -> Table:
    """Solved by round (score verdict over the stated tiers) per model, strategy and arm: one row a round."""
    table = Table(
        title="solved by round; answers per episode so far, reused ones too, and their tokens",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for heading in ("model · strategy · feedback", "round"):
        table.add_column(heading, no_wrap=True)
    for heading in ("solved, 95%", "answers", "tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for name, arm in repair.items():
        for point in arm["solved_by_round"]:
            table.add_row(
                escape(name) if point["round"] == 0 else "",
                str(point["round"]),
                percent(point),
                _number(point["requests"], 1),
                _number(point["tokens"], 0),
                "█" * round(20 * (point["value"] or 0)),
            )
    return table


def rates_table(repair: dict[str, Any]) -> Table:
    """What the next answer does with the last one: mends it, by failure kind, or breaks it."""
    title = "the next answer: right after a failure (by its kind), wrong after a right one"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("model · strategy · feedback", "last answer"):
        table.add_column(heading, no_wrap=True)
    table.add_column("mended or broken, 95%", justify="right", no_wrap=True)
    for name, arm in repair.items():
        rows = [("any failure", arm["repaired"]), *arm["repair_rate"].items(), ("right: broken", arm["regressions"])]
        seen = [(what, rate) for what, rate in rows if rate["of"]]
        for place, (what, rate) in enumerate(seen):
            table.add_row(escape(name) if place == 0 else "", what, percent(rate["rate"]))
    return table


def independent_table(repair: dict[str, Any]) -> Table:
    """Each arm at its last round against independent samples that use as much on average."""
    title = "against independent samples (the first request again and again, same stopping rule)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("model · strategy · feedback", "at equal"):
        table.add_column(heading, no_wrap=True)
    for heading in ("used", "solved", "independent, 95%", "difference in points, 95%"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, arm in repair.items():
        for unit in ("answers", "tokens") if arm["independent"] else ():
            rows = arm["independent"]["equal_requests" if unit == "answers" else "equal_tokens"]
            if rows:
                row = rows[-1]
                table.add_row(
                    escape(name) if unit == "answers" else "",
                    unit,
                    _number(row["spent"], 1 if unit == "answers" else 0),
                    f"{100 * row['arm']:.0f}%",
                    percent(row["independent"]) + (" (fewer were asked)" if row["short"] else ""),
                    points(row["difference"]) if row["difference"] else "not comparable",
                )
    return table


def print_comparison(console: Console, families: Sequence[dict[str, Any]]) -> None:
    """Each family: what is compared, the ranking, every pair."""
    for family in families:
        console.print(f"\n[bold]{escape(comparison_title(family))}[/]", soft_wrap=True)
        tiers = ", ".join(family["tiers"])
        left_out = f"; {family['tasks_left_out']} tasks that not all have, alike, are left out"
        few = f"; fewer than {FEW_TASKS}: only large differences show" if family["few_tasks"] else ""
        _say(
            console,
            f"{family['tasks']} tasks{few}; over {tiers or 'no tier that all state'}"
            f"{left_out if family['tasks_left_out'] else ''}",
        )
        _say(console, ranking(family))
        if family["pairs"]:
            whole(console, pairs_table(family))


def comparison_title(family: dict[str, Any]) -> str:
    of = f" of {family['of']}" if family["of"] else ""
    return f"{family['axis'].replace('_', ' ')}{of}, {MEASURES[family['measure']]}"


def pairs_table(family: dict[str, Any]) -> Table:
    """Per pair the difference with its interval, tasks better, worse and tied, p, p after Holm, and the finding."""
    table = Table(box=None, pad_edge=False)
    table.add_column("pair")
    for heading in ("difference in points, 95%", "better", "worse", "tied", "p", "adjusted"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for pair in family["pairs"]:
        table.add_row(
            escape(f"{pair['a']} over {pair['b']}"),
            points(pair["difference"]),
            *(str(pair[key]) for key in ("better", "worse", "tied")),
            *(f"{pair[key]:.3g}" for key in ("p", "p_holm")),
            escape(f"{pair['ahead']} is ahead") if pair["ahead"] else "not told apart",
        )
    return table


def whole(console: Console, table: Table) -> None:
    """Print a table as wide as it is: a name or figure that is cut short is of no use."""
    natural, width = console.measure(table, options=console.options.update(width=10_000)).maximum, console.width
    console.width = max(natural, width)
    console.print(table, crop=False)
    console.width = width


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def percent(estimate: dict[str, Any]) -> str:
    """An estimate as text: "62% [31, 86] of 8"; "–" where nothing was observed."""
    if estimate["value"] is None:
        return "–"
    low, high = 100 * estimate["low"], 100 * estimate["high"]
    return f"{100 * estimate['value']:.0f}% [{low:.0f}, {high:.0f}] of {estimate['n']}"
