"""What the measurements of `oracle.validation` come to: shares with their 95% intervals, the operator as the unit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentloop.statistics import share
from agentloop.validation import Records
from oracle.corpus import BUG, CONTROL
from oracle.naive import PROFILES
from oracle.strategies import STRATEGIES
from oracle.tolerance import RULES
from oracle.validation import calibration, compiled, equivalence, mutation, strategies, verdicts
from oracle.verdict import FAIL, PASS

PUBLISHED_CASES = 30  # per operator and dtype in the seed paper
SAME_CODE = "makes the same launches of the same code on every case of the default portfolio"
EQUIVALENT = ("same code", "proof")  # fates of mutants that are not wrong
CLAIM = "pass"  # the seed paper's "benchmark verdict" of every entry: a constant in its corpus, never measured

Row = dict[str, Any]


def summarize(records: Records) -> dict[str, Any]:
    """All tables as one JSON object; a part that was not run is absent."""
    parts: dict[str, list[Row]] = defaultdict(list)
    for (part, _), record in records.items():
        parts[part].append(record)
    summary: dict[str, Any] = {}
    if parts[verdicts.PART]:
        summary["paper"] = paper_table(parts)
        summary["verdicts"] = verdict_figures(parts[verdicts.PART])
    if parts[strategies.PART]:
        summary["strategies"] = strategy_table(parts[strategies.PART])
    if parts[calibration.PART]:
        summary["calibration"] = calibration.figures(parts[calibration.PART])["atol"]
    if parts[mutation.PART]:
        same = compiled.same(parts[compiled.PART])
        summary["mutation"] = {
            half: mutation_figures([r for r in parts[mutation.PART] if r["half"] == half], same)
            for half in sorted({record["half"] for record in parts[mutation.PART]}, reverse=True)
        }
    if parts[equivalence.PART]:
        summary["equivalence"] = {
            "equal": {digest: n for record in parts[equivalence.PART] for digest, n in record["equal"].items()},
            "differs": {
                digest: case for record in parts[equivalence.PART] for digest, case in record["differs"].items()
            },
        }
    summary["seconds"] = {part: round(sum(row["seconds"] for row in rows), 1) for part, rows in parts.items() if rows}
    return summary


# --- the seed paper's corpus ----------------------------------------------------------------------------------------


def paper_table(parts: Mapping[str, list[Row]]) -> list[Row]:
    """One row per published entry: the paper's claim, the naive checks as measured, cases failed under its own schema and
    tolerances, and in how many of the seeds the default portfolio fails it in the full domain."""
    naive = {row["kernel"]: row["naive"] for row in parts[verdicts.NAIVE]}
    published: dict[str, Row] = defaultdict(dict)
    for row in parts[strategies.PART]:
        if row["strategy"] == "default":
            flags = row["flagged"]["paper"][:PUBLISHED_CASES]
            published[row["kernel"]][row["dtype"]] = [flags.count("1"), len(flags)]
    table: dict[str, Row] = {}
    for row in parts[verdicts.PART]:
        if not row["paper"] or row["domain"] != "full":
            continue
        entry = table.setdefault(
            row["kernel"],
            {
                "paper": row["paper"],
                "kernel": row["kernel"],
                "task": row["task"],
                "label": row["label"],
                "claimed": CLAIM,
                "naive": naive.get(row["kernel"], {}),
                "published_cases_failed": {d: n for d, n in published[row["kernel"]].items() if n[1]},
                "seeds": 0,
                "flagged": 0,
            },
        )
        entry["seeds"] += 1
        entry["flagged"] += row["status"] == FAIL
    return [table[kernel] for kernel in sorted(table)]


def verdict_figures(rows: list[Row]) -> Row:
    """Bugs flagged and right kernels passed, over kernels × seeds × domains, and those that went wrong by name."""

    def figures(chosen: list[Row], right: str) -> Row:
        wrong = [row for row in chosen if row["status"] != right]
        return {
            "kernels": len({(row["task"], row["kernel"]) for row in chosen}),
            "seeds": len({row["seed"] for row in chosen}),
            "verdicts": len(chosen),
            "share": _share(chosen, lambda row: row["status"] == right),
            "wrong": [{key: row[key] for key in ("key", "status", "kind", "tier", "message")} for row in wrong],
        }

    return {
        "paper_bugs": figures([row for row in rows if row["label"] == BUG], FAIL),
        "paper_controls": figures([row for row in rows if row["label"] == CONTROL and row["paper"]], PASS),
        "other_right_kernels": figures([row for row in rows if row["label"] == CONTROL and not row["paper"]], PASS),
    }


# --- published strategies -------------------------------------------------------------------------------------------


def strategy_table(rows: list[Row]) -> dict[str, Row]:
    """Per strategy: bug cases, those that show their bug, and by tolerance policy the share flagged of either, and false
    positives on right kernels. A policy counts only cases of operators and dtypes that it has figures for (all of them)."""
    return {
        strategy: _strategy([row for row in rows if row["strategy"] == strategy])
        for strategy in STRATEGIES
        if any(row["strategy"] == strategy for row in rows)
    }


def _strategy(rows: list[Row]) -> Row:
    bugs = [row for row in rows if row["label"] == BUG and row["showing"]]
    controls = [row for row in rows if row["label"] == CONTROL and row["showing"]]
    shown = [bit for row in bugs for bit in row["showing"]]
    return {
        "bug_cases": len(shown),
        "showing": shown.count("1"),
        "never_shown": sorted({row["kernel"] for row in bugs} - {r["kernel"] for r in bugs if "1" in r["showing"]}),
        "control_cases": sum(len(row["showing"]) for row in controls),
        "policies": {name: _policy(bugs, controls, name) for name in RULES},
    }


def _policy(bugs: list[Row], controls: list[Row], name: str) -> Row:
    of_showing: dict[str, list[bool]] = defaultdict(list)
    of_all: dict[str, list[bool]] = defaultdict(list)
    false: dict[str, list[bool]] = defaultdict(list)
    for row in bugs:
        for showing, flagged in zip(row["showing"], row["flagged"][name], strict=True):
            of_all[row["kernel"]].append(flagged == "1")
            if showing == "1":
                of_showing[row["kernel"]].append(flagged == "1")
    for row in controls:
        false[row["kernel"]] += [flagged == "1" for flagged in row["flagged"][name]]
    return {
        "flagged_of_showing": share(of_showing).to_json(),
        "flagged_of_all": share(of_all).to_json(),
        "false_positives": share(false).to_json(),
        "false_positive_kernels": sorted(kernel for kernel, flags in false.items() if any(flags)),
    }


# --- mutants --------------------------------------------------------------------------------------------------------


def mutation_figures(rows: list[Row], same: Mapping[str, bool]) -> Row:
    """Of one half: what is excluded and why; then, over the mutants that KernelBench's check passes and over all, what
    the oracle kills, what it fails or reports, and every survivor with what is known of it; then what each naive check
    kills. `same`: which survivors compile to the same code."""
    counted = [row for row in rows if not row["excluded"]]
    fates = {row["key"]: fate(row, same) for row in counted}
    real = [row for row in counted if fates[row["key"]] not in EQUIVALENT]
    return {
        "mutants": len(rows),
        "excluded": dict(Counter(row["excluded"] for row in rows if row["excluded"])),
        "headline": _score([row for row in counted if mutation.headline(row)], fates),
        "all": _score(counted, fates),
        "naive": {name: {"killed": _kills(counted, name), "killed_of_wrong": _kills(real, name)} for name in PROFILES},
    }


def _kills(rows: Iterable[Row], profile: str) -> Row:
    return _share([row for row in rows if profile in row["naive"]], lambda row: row["naive"][profile] == FAIL)


def fate(row: Row, same: Mapping[str, bool]) -> str:
    """killed; or of a survivor: `same code` (compiles to the same), `proof` (proof and 1,000 equal cases), `reported`
    (in tier `portability`, as undefined lanes or an order of programs, which is not a fail), `unjudged`, or `survived`.
    Only the first two are taken for equivalent."""
    if row["status"] == FAIL:
        return "killed"
    if same.get(row["key"]):
        return "same code"
    if equivalence.proven(row["key"]):
        return "proof"
    if row["status"] != PASS:
        return "unjudged"
    return "reported" if row["portability"] == FAIL else "survived"


def _score(rows: list[Row], fates: Mapping[str, str]) -> Row:
    """Two shares, raw and adjusted (of those not equivalent): killed, which is failed by a tier that decides, and failed or
    reported, which takes in what tier `portability` tells and a headline leaves out."""
    wrong = [row for row in rows if fates[row["key"]] not in EQUIVALENT]

    def shares(holds: Callable[[Row], bool]) -> Row:
        return {"raw": _share(rows, holds), "adjusted": _share(wrong, holds)}

    return {
        "mutants": len(rows),
        "operators": len({row["task"].partition("/")[2] for row in rows}),
        "mutation_operators": len({row["operator"] for row in rows}),
        "fates": dict(Counter(fates[row["key"]] for row in rows)),
        "killed": shares(lambda row: row["status"] == FAIL),
        "failed_or_reported": shares(lambda row: FAIL in (row["status"], row["portability"])),
        "survivors": [_survivor(row, fates[row["key"]]) for row in rows if row["status"] != FAIL],
        "killed_by": {
            "tier": dict(Counter(row["tier"] for row in rows if row["status"] == FAIL)),
            "kind": dict(Counter(row["kind"] for row in rows if row["status"] == FAIL)),
        },
    }


def _survivor(row: Row, fate: str) -> Row:
    """What is known of one: `why` it is equivalent or survives, or what was reported."""
    columns = ("key", "task", "kernel", "operator", "line", "description", "status", "portability")
    proof = equivalence.proofs().get(row["key"])
    written = proof.text if proof else equivalence.explained(row["key"])
    why = SAME_CODE if fate == "same code" else written or row["message"] or None
    return {name: row[name] for name in columns} | {
        "fate": fate,
        "why": why,
        "naive_pass": mutation.headline(row),
    }


def _share(rows: Iterable[Row], holds: Callable[[Row], bool]) -> Row:
    groups: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        groups[row["task"]].append(holds(row))
    return share(groups).to_json()
