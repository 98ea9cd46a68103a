"""The tables that `agentloop validate` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oracle.naive import PROFILES
from oracle.tolerance import RULES

SHORT = 160  # characters of a proof that are printed; --json has all


def print_validation(summary: dict[str, Any], console: Console) -> None:
    """Everything that was measured; shares with 95% intervals, operators as the unit."""
    console.print(
        f"oracle {summary['oracle']}, {summary['backend']}, torch {summary['torch']}, triton {summary['triton']}"
    )
    if "paper" in summary:
        _paper(summary["paper"], console)
        _verdicts(summary["verdicts"], console)
    if "strategies" in summary:
        _strategies(summary["strategies"], console)
    for half, figures in summary.get("mutation", {}).items():
        _mutation(half, figures, console)
    if "equivalence" in summary:
        found = summary["equivalence"]
        console.print(
            f"written proofs: {len(found['equal'])} mutants compared with their originals, "
            f"{len(found['differs'])} differ: {', '.join(found['differs']) or 'none'}"
        )
    seconds = ", ".join(f"{part} {value:.0f}" for part, value in summary["seconds"].items())
    console.print(f"seconds of work: {seconds}")


def _table(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _paper(rows: list[dict[str, Any]], console: Console) -> None:
    """The paper's claim beside what the naive checks say when they are run: p pass, f fail, u unjudged."""
    table = _table(
        "the seed paper's corpus. claim: the paper's own naive column, a constant; naive: as measured here, "
        f"p pass, f fail ({', '.join(PROFILES)}); published: cases failed in the published setting (float32, float16)",
        ("entry", "label", "claim", "naive"),
        ("published", "fails in seeds"),
    )
    for row in rows:
        naive = " ".join(row["naive"].get(name, "–")[0] for name in PROFILES)
        cases = ", ".join(f"{failed}/{n}" for failed, n in row["published_cases_failed"].values()) or "–"
        table.add_row(
            escape(row["paper"]), row["label"], row["claimed"], naive, cases, f"{row['flagged']}/{row['seeds']}"
        )
    console.print(table)


def _verdicts(figures: dict[str, Any], console: Console) -> None:
    for name, found in figures.items():
        if found["verdicts"]:
            console.print(
                f"{name.replace('_', ' ')}: {found['kernels']} kernels, {found['verdicts']} verdicts "
                f"({found['seeds']} seeds), right {percent(found['share'])}"
            )
            for wrong in found["wrong"]:
                console.print(
                    f"  WRONG {wrong['key']}: {wrong['status']} {wrong['kind']} {wrong['message']}", markup=False
                )


def _strategies(rows: dict[str, Any], console: Console) -> None:
    table = _table(
        "published strategies. showing: the bug's exact result differs from the right one after rounding; then, of these, "
        "flagged under each tolerance, and false positives on right kernels",
        ("strategy",),
        ("showing", *RULES, *(f"false {name}" for name in RULES)),
    )
    for strategy, row in rows.items():
        flagged = [percent(row["policies"][name]["flagged_of_showing"]) for name in RULES]
        false = [percent(row["policies"][name]["false_positives"]) for name in RULES]
        table.add_row(strategy, f"{row['showing']}/{row['bug_cases']}", *flagged, *false)
    console.print(table)
    for strategy, row in rows.items():
        if row["never_shown"]:
            console.print(f"  {strategy} never shows: {', '.join(row['never_shown'])}")


def _mutation(half: str, figures: dict[str, Any], console: Console) -> None:
    excluded = ", ".join(f"{n} {why}" for why, n in figures["excluded"].items()) or "none"
    table = _table(
        f"mutants, {half} half: {figures['mutants']} sampled; excluded: {excluded}. adjusted: of those not equivalent; "
        "reported: undefined lanes or an order of programs, which is told and decides nothing",
        ("mutants",),
        (
            "number",
            "operators",
            "killed, raw",
            "killed, adjusted",
            "failed or reported, raw",
            "failed or reported, adjusted",
        ),
    )
    for title, name in (("that KernelBench's check passes", "headline"), ("all", "all")):
        score = figures[name]
        shares = [percent(score[what][of]) for what in ("killed", "failed_or_reported") for of in ("raw", "adjusted")]
        table.add_row(title, str(score["mutants"]), str(score["operators"]), *shares)
    console.print(table)
    naive = _table("what naive checks kill of the same mutants", ("check",), ("of all", "of those not equivalent"))
    for name, found in figures["naive"].items():
        naive.add_row(name, percent(found["killed"]), percent(found["killed_of_wrong"]))
    console.print(naive)
    fates = ", ".join(f"{n} {fate}" for fate, n in figures["headline"]["fates"].items())
    console.print(f"of those that KernelBench's check passes: {fates or 'none'}")
    _survivors(figures["all"]["survivors"], console)


def _survivors(rows: list[dict[str, Any]], console: Console) -> None:
    """Every mutant that the oracle does not fail, its fate, and what is known of it in short."""
    for passed, title in ((True, "survivors among them"), (False, "survivors that KernelBench's check fails")):
        chosen = sorted((row for row in rows if row["naive_pass"] is passed), key=lambda row: row["fate"])
        if chosen:
            console.print(f"{title}:")
        for row in chosen:
            place = f"{row['task']} {row['kernel']}:{row['line']} {row['operator']}"
            line = f"  {row['fate']} {row['key']} {place}: {row['description']}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
            if row["why"]:
                console.print(f"    {_short(row['why'])}", markup=False, highlight=False, soft_wrap=True)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def percent(estimate: dict[str, Any]) -> str:
    """ "98.1% [97.0, 98.9]" of an estimate as JSON; "–" where nothing was observed."""
    if estimate["value"] is None:
        return "–"
    return f"{100 * estimate['value']:.1f}% [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"
