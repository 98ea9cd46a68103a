"""What a verdict costs: a naive check alone against the whole oracle, same candidates, same pool, one run.

    python benchmarks/cost.py --answers DIR --out cost.jsonl [--backend cuda] [--workers 16] [--repeat 5]
    python benchmarks/cost.py --controls --out cost.jsonl
    python benchmarks/cost.py --table cost.jsonl

DIR holds tasks.jsonl and answers-MODEL.jsonl; --controls takes the corpus's right kernels of `ops`, one per operator,
which see all cases (but for `rowblock`, which compile for minutes). Ways of judging take turns, `--repeat` times:
`kernelbench` (that profile alone, its five trials at one shape), `oracle` (the full domain until decided, up to 40 cases
per dtype; no naive check, nothing shrunk) and `run` (what `agentloop run` does with an answer: all six profiles, the
oracle, the counterexample). A line per turn: seconds of wall time, candidates a second, executions, and the share of the
pool's time by activity (`oracle.clock`). Answers without code, or whose code does not parse, are left out: no process is
started for them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from agentloop.content import load_tasks  # noqa: E402
from agentloop.machine import hardware, versions  # noqa: E402
from benchmarks.agreement import answers  # noqa: E402
from oracle import clock  # noqa: E402
from oracle.backends import BACKENDS, open_backend  # noqa: E402
from oracle.corpus import CONTROL, kernels  # noqa: E402
from oracle.errors import OracleError  # noqa: E402
from oracle.judge import Judge  # noqa: E402
from oracle.naive import PROFILES, run_profile  # noqa: E402
from oracle.schema import Task  # noqa: E402
from oracle.static import check_source  # noqa: E402

WAYS = ("kernelbench", "oracle", "run")
Way = Callable[[Task, str], Counter[str]]  # judges one source; says what it counted


def ways(backend: Any) -> dict[str, Way]:
    """Each with a judge of its own, whose references stay from turn to turn."""
    bare, whole = Judge(backend), Judge(backend)

    def kernelbench(task: Task, source: str) -> Counter[str]:
        return Counter({run_profile(backend, task, source, PROFILES["kernelbench"]).status: 1})

    def judged(judge: Judge, **options: Any) -> Way:
        def way(task: Task, source: str) -> Counter[str]:
            verdict = judge.judge(task, source, forbid=frozenset(), **options)
            spent = {f"seconds {name}": seconds for name, seconds in verdict.spent.items()}
            counted = {verdict.status: 1, "executions": verdict.executions, "cases": verdict.cases_run}
            return Counter({**counted, **spent})  # type: ignore[arg-type]

        return way

    return {"kernelbench": kernelbench, "oracle": judged(bare, naive=False, minimized=False), "run": judged(whole)}


def turn(name: str, way: Way, candidates: list[tuple[Task, str]], workers: int) -> dict[str, Any]:
    def one(candidate: tuple[Task, str]) -> tuple[float, Counter[str]]:
        started = time.monotonic()
        clock.taken()
        try:
            counted = way(*candidate)
        except OracleError as error:
            return time.monotonic() - started, Counter({f"error: {error}": 1})
        own, _ = clock.taken()
        counted.update({f"seconds {activity}": seconds for activity, seconds in own.items()})  # type: ignore[arg-type]
        return time.monotonic() - started, counted

    started = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one, candidates))
    wall = time.monotonic() - started
    total = sum(seconds for seconds, _ in results)
    counted: Counter[str] = sum((counts for _, counts in results), Counter())
    return {
        "way": name,
        "seconds": round(wall, 2),
        "candidates": len(candidates),
        "per_second": round(len(candidates) / wall, 3),
        "median_seconds": round(statistics.median(seconds for seconds, _ in results), 3),
        "counted": {key: round(n) for key, n in counted.items() if not key.startswith("seconds ")},
        "shares": {
            key.removeprefix("seconds "): round(100 * n / total, 1)
            for key, n in counted.most_common()
            if key.startswith("seconds ")
        },
    }


def measure(options: argparse.Namespace) -> None:
    tasks = load_tasks()
    if options.controls:
        right = {
            kernel.task: kernel.source for kernel in kernels("ops", label=CONTROL) if "rowblock" not in kernel.name
        }
        sources = [(tasks[task], source) for task, source in right.items()]
    else:
        sources = [(tasks[item.task], item.source) for item in answers(Path(options.answers))]
    candidates = [(task, source) for task, source in sources if check_source(source) is None][:: options.step]
    backend = open_backend(options.backend, allow_unsafe=options.allow_unsafe)
    header = {"backend": backend.name, "workers": options.workers, "hardware": hardware(), **versions()}
    try:
        chosen = {name: way for name, way in ways(backend).items() if name in options.ways}
        with options.out.open("w") as file:
            file.write(json.dumps(header) + "\n")
            for _ in range(options.repeat):
                for name, way in chosen.items():
                    row = turn(name, way, candidates, options.workers)
                    print(row["way"], f"{row['seconds']:.1f} s", f"{row['per_second']:.2f} a second", flush=True)
                    file.write(json.dumps(row) + "\n")
                    file.flush()
    finally:
        backend.close()


def table(path: Path) -> None:
    header, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    print(f"\n{header['backend']}, {header['workers']} side by side")
    print(f"{'way':12} {'turns':>5} {'seconds':>18} {'a second':>18} {'executions':>11}  where the time goes, %")
    by_way: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_way.setdefault(row["way"], []).append(row)
    for name, some in by_way.items():
        shares = ", ".join(f"{key} {value:g}" for key, value in list(some[0]["shares"].items())[:6])
        executions = some[0]["counted"].get("executions", "-")
        print(
            f"{name:12} {len(some):5} {_spread(some, 'seconds')} {_spread(some, 'per_second')} {executions:>11}  {shares}"
        )
    if "kernelbench" in by_way:
        for name in (name for name in by_way if name != "kernelbench"):
            ratios = [b["seconds"] / a["seconds"] for a, b in zip(by_way["kernelbench"], by_way[name], strict=False)]
            print(f"{name} / kernelbench: {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")


def _spread(rows: list[dict[str, Any]], key: str) -> str:
    values = [row[key] for row in rows]
    return f"{statistics.median(values):.2f} [{min(values):.2f}, {max(values):.2f}]".rjust(18)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", metavar="DIR")
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), metavar="NAMES")
    parser.add_argument("--out", metavar="FILE", type=Path, default=Path("cost.jsonl"))
    parser.add_argument("--table", metavar="FILE", type=Path, help="measure nothing, show the table of this file")
    parser.add_argument("--backend", choices=BACKENDS, default="auto")
    parser.add_argument("--workers", type=int, default=16, metavar="N")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="every Nth candidate only")
    parser.add_argument("--allow-unsafe", action="store_true")
    options = parser.parse_args()
    if options.table is None:
        if not set(options.ways) <= set(WAYS):
            parser.error(f"--ways must be of {', '.join(WAYS)}")
        if (options.answers is None) != options.controls:
            parser.error(
                "--answers DIR (tasks.jsonl and answers-MODEL.jsonl), --controls or --table FILE is needed, one of them"
            )
        measure(options)
    table(options.table or options.out)


if __name__ == "__main__":
    main()
