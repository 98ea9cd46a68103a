"""How far the interpreter can be believed: the same kernels judged on both backends, and where the verdicts differ.

    python benchmarks/agreement.py --corpus --kernels DIR --answers DIR --out agreement.jsonl     (judge, then the table)
    python benchmarks/agreement.py --table agreement.jsonl                                        (the table alone)

Sources: `--corpus` the kernels of oracle/corpus, `--kernels` a folder with a manifest.jsonl, `--answers` a folder with
tasks.jsonl and answers-MODEL.jsonl. Each judging process has a backend of its own and judges one kernel at a time; lines
are written as they come, so that what a time limit leaves is still of use. `--resume` skips what the file already holds.
Agreement is counted over kernels judged on both: status, and the kind of the first failure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
BACKENDS = ("interpreter", "cuda")


@dataclass(frozen=True)
class Item:
    """One kernel to be judged. `label` is what is known of it: control, bug, correct, buggy, cheat, or ""."""

    group: str
    name: str
    task: str
    label: str
    source: str
    forbid: bool = True  # whether its author was told that host arithmetic is forbidden

    @property
    def key(self) -> str:
        return f"{self.group}/{self.name}"


def items(options: argparse.Namespace) -> list[Item]:
    """All sources that were asked for, groups in turn, so that a run cut short has some of each."""
    groups = []
    if options.kernels:
        groups.append(list(_folder(Path(options.kernels))))
    if options.corpus:
        from oracle.corpus import kernels

        groups.append([Item("corpus", f"{k.suite}-{k.name}", k.task, k.label, k.source) for k in kernels()])
    if options.answers:
        groups.append(list(answers(Path(options.answers))))
    if options.only:
        groups = [[item for item in group if options.only in item.key] for group in groups]
    return [item for turn in zip_longest(*groups) for item in turn if item is not None]


def _folder(folder: Path) -> Iterator[Item]:
    for line in (folder / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        source = (folder / entry["file"]).read_text()
        yield Item("kernels", entry["file"].removesuffix(".py"), f"ops/{entry['op']}", entry["label"], source)


def answers(folder: Path) -> Iterator[Item]:
    from agentloop.content import load_tasks
    from agentloop.extraction import extract

    tasks = load_tasks()
    names = [json.loads(line)["task"] for line in (folder / "tasks.jsonl").read_text().splitlines()]
    lines_of = {p.stem.removeprefix("answers-"): p.read_text().splitlines() for p in folder.glob("answers-*.jsonl")}
    for index, name in enumerate(names):
        task = tasks[f"tritonbench_t/{name}"]
        for model, lines in sorted(lines_of.items()):
            source = extract(json.loads(lines[index])["predict"], task.entry).source
            if source is not None:
                yield Item("answers", f"{model}-{name}", task.id, "", source, forbid=False)


def work(backend: str, options: dict[str, Any], todo: Any, done: Any) -> None:
    """One judging process: until nothing is left to do."""
    from agentloop.content import load_tasks
    from oracle.backends import open_backend
    from oracle.errors import OracleError
    from oracle.judge import Judge

    tasks = load_tasks()
    opened = open_backend(backend, allow_unsafe=options["allow_unsafe"])
    try:
        judge = Judge(opened, domain=options["domain"], seed=options["seed"], limit=options["cases"])
        while (item := todo.get()) is not None:
            forbid = {} if item.forbid else {"forbid": frozenset()}
            started = time.monotonic()
            try:
                verdict = judge.judge(tasks[item.task], item.source, naive=False, minimized=False, **forbid)
                done.put(_row(item, backend, verdict.to_json()))
            except OracleError as error:
                seconds = round(time.monotonic() - started, 3)
                done.put(_row(item, backend, {"status": "error", "seconds": seconds, "notes": [str(error)]}))
    finally:
        opened.close()
        done.put(None)


def _row(item: Item, backend: str, verdict: dict[str, Any]) -> dict[str, Any]:
    about = {name: value for name, value in asdict(item).items() if name not in ("source", "forbid")}
    kept = ("status", "failure", "tiers", "notes", "seconds", "executions", "cases_run")
    return about | {"backend": backend} | {name: verdict.get(name) for name in kept}


def judge_all(options: argparse.Namespace, out: Path) -> None:
    """Fill `out` until everything is judged or the time is over."""
    deadline = time.monotonic() + options.seconds
    known = {(row["group"], row["name"], row["backend"]) for row in read(out)} if options.resume else set()
    context = multiprocessing.get_context("spawn")
    done: Any = context.Queue()
    processes, queues = [], []
    everything = items(options)
    settings = {name: getattr(options, name) for name in ("allow_unsafe", "domain", "seed", "cases")}
    for backend, count in zip(BACKENDS, (options.interpreter, options.cuda), strict=True):
        todo: Any = context.Queue()
        queues.append(todo)
        for item in everything:
            if (item.group, item.name, backend) not in known:
                todo.put(item)
        for _ in range(count):
            todo.put(None)
            processes.append(context.Process(target=work, args=(backend, settings, todo, done)))
    for process in processes:
        process.start()
    running, count = len(processes), 0
    with out.open("a" if options.resume else "w") as file:
        while running and (left := deadline - time.monotonic()) > 0:
            try:
                row = done.get(timeout=min(left, 5.0))
            except queue.Empty:
                running = sum(process.is_alive() for process in processes)
                continue
            if row is None:
                running -= 1
                continue
            file.write(json.dumps(row) + "\n")
            file.flush()
            count += 1
    for process in processes:
        process.kill()  # its warm parent ends with it
    for todo in queues:
        todo.cancel_join_thread()
    print(f"{count} verdicts of {2 * len(everything)} in {options.seconds - (deadline - time.monotonic()):.0f} s")


def read(path: Path) -> list[dict[str, Any]]:
    """Complete lines only."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def table(rows: list[dict[str, Any]]) -> None:
    pairs = _pairs(rows)
    print(f"\n{'group':10} {'label':8} {'both':>5} {'status':>7} {'kind':>6}   not judged twice")
    labels = sorted({(pair["interpreter"]["group"], pair["interpreter"]["label"]) for pair in pairs})
    single = len({(r["group"], r["name"]) for r in rows}) - len(pairs)
    for group, label in labels:
        some = [p for p in pairs if (p["interpreter"]["group"], p["interpreter"]["label"]) == (group, label)]
        same = [p for p in some if p["interpreter"]["status"] == p["cuda"]["status"]]
        kinds = [p for p in same if _kind(p["interpreter"]) == _kind(p["cuda"])]
        print(f"{group:10} {label or '-':8} {len(some):5} {len(same):7} {len(kinds):6}")
    print(f"{'':40} {single}")
    print(f"\n{'interpreter':22} {'cuda':22} kernels")
    counts = Counter((_kind(p["interpreter"]), _kind(p["cuda"])) for p in pairs)
    for (mine, theirs), number in counts.most_common():
        print(f"{mine:22} {theirs:22} {number:7}{'' if mine == theirs else '  differ'}")
    differing = [p for p in pairs if _kind(p["interpreter"]) != _kind(p["cuda"])]
    for title, wanted in (
        ("passes on the interpreter, fails on the GPU", lambda p: p["interpreter"]["status"] == "pass"),
        ("other differences", lambda p: p["interpreter"]["status"] != "pass"),
    ):
        some = [p for p in differing if wanted(p)]
        print(f"\n{title}: {len(some)}")
        for pair in some:
            print(f"  {pair['cuda']['group']}/{pair['cuda']['name']} ({pair['cuda']['label'] or '-'})")
            for backend in BACKENDS:
                print(f"    {backend:12} {_described(pair[backend])}")
    for backend in BACKENDS:
        seconds = sorted(row["seconds"] for row in rows if row["backend"] == backend and row["seconds"] is not None)
        if seconds:
            middle, high = seconds[len(seconds) // 2], seconds[int(0.9 * (len(seconds) - 1))]
            print(f"\n{backend}: {len(seconds)} kernels, seconds each: median {middle:.1f}, 90% {high:.1f}", end="")
    print()


def _pairs(rows: list[dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["group"], row["name"]), {})[row["backend"]] = row
    return [pair for pair in found.values() if len(pair) == len(BACKENDS)]


def _kind(row: dict[str, Any]) -> str:
    return row["failure"]["kind"] if row["failure"] else row["status"]


def _described(row: dict[str, Any]) -> str:
    failure = row["failure"]
    text = f"{failure['kind']} in {failure['tier']}: {failure['message']}" if failure else row["status"]
    return text[:240] + (f" [{'; '.join(row['notes'])[:200]}]" if row["notes"] else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--kernels", metavar="DIR")
    parser.add_argument("--answers", metavar="DIR")
    parser.add_argument("--only", metavar="TEXT", help="kernels whose GROUP/NAME holds this text")
    parser.add_argument("--out", metavar="FILE", type=Path, default=Path("agreement.jsonl"))
    parser.add_argument("--resume", action="store_true", help="keep what FILE holds and judge the rest")
    parser.add_argument("--table", metavar="FILE", type=Path, help="judge nothing, show the table of this file")
    parser.add_argument("--seconds", type=float, default=450, help="stop after so many")
    parser.add_argument("--interpreter", type=int, default=6, metavar="N", help="judging processes on the interpreter")
    parser.add_argument("--cuda", type=int, default=10, metavar="N", help="judging processes on the GPU")
    parser.add_argument("--domain", choices=("core", "full"), default="full")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--allow-unsafe", action="store_true")
    options = parser.parse_args()
    if options.table is None:
        judge_all(options, options.out)
    table(read(options.table or options.out))


if __name__ == "__main__":
    main()
