"""Many candidates in one run against each judged alone: the verdicts must be equal, whatever ran beside or before.

    python benchmarks/mixed.py --out mixed.jsonl [--candidates 1000] [--workers 2]

Right kernels of the corpus, the paper's bugs, mutants, and every 20th a hostile one of tests/hostile/cheats.py. Together:
one judge, one warm parent, one cache of references, `--workers` threads. Alone: each candidate has a judge and a warm
parent of its own. A line is written per verdict as it comes; started again, the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from agentloop.content import load_tasks  # noqa: E402
from oracle.backends import open_backend  # noqa: E402
from oracle.corpus import CONTROL, kernels  # noqa: E402
from oracle.corpus.mutate import apply  # noqa: E402
from oracle.judge import Judge, Limits  # noqa: E402
from tests.hostile.cheats import CHEATS  # noqa: E402

TOGETHER, ALONE = "together", "alone"
LIMITS = Limits(call_seconds=20.0)
EVERY = 20


@dataclass(frozen=True)
class Candidate:
    name: str
    task: str
    source: str


def candidates(count: int) -> list[Candidate]:
    """The first `count` of an endless list that is the same at every run."""
    plain = [Candidate(kernel.name, kernel.task, kernel.source) for kernel in kernels()]
    controls, seed = kernels(label=CONTROL), 0
    while len(plain) < count:
        seed += 1
        for kernel in controls:
            plain.append(
                Candidate(f"{kernel.name} changed, seed {seed}", kernel.task, apply(kernel.source, seed, 1)[0])
            )
    hostile = [Candidate(f"hostile: {cheat.name}", cheat.task, cheat.source) for cheat in CHEATS]
    places = range(EVERY - 1, count, EVERY)
    mixed = dict(zip(places, (hostile[index % len(hostile)] for index in range(len(places))), strict=True))
    rest = iter(plain)
    return [mixed[index] if index in mixed else next(rest) for index in range(count)]


class Results:
    """The verdicts so far, by way and place in the list."""

    def __init__(self, path: Path) -> None:
        self.path, self.verdicts, self.seconds = path, dict[tuple[str, int], dict[str, Any]](), Counter[str]()
        self._lock = threading.Lock()
        for line in path.read_text().splitlines() if path.exists() else []:
            self._keep(json.loads(line))

    def add(self, way: str, index: int, candidate: Candidate, verdict: dict[str, Any]) -> None:
        record = {"way": way, "index": index, "name": candidate.name, "verdict": verdict}
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
            self._keep(record)

    def _keep(self, record: dict[str, Any]) -> None:
        verdict = dict(record["verdict"])
        self.seconds[record["way"]] += verdict.pop("seconds")
        self.verdicts[record["way"], record["index"]] = verdict


def together(listed: list[Candidate], results: Results, workers: int) -> None:
    tasks, engine = load_tasks(), open_backend("interpreter")
    judge = Judge(engine, domain="core", limits=LIMITS)

    def one(index: int) -> None:
        if (TOGETHER, index) not in results.verdicts:
            candidate = listed[index]
            verdict = judge.judge(tasks[candidate.task], candidate.source)
            results.add(TOGETHER, index, candidate, verdict.to_json())

    try:
        _run(one, len(listed), workers)
    finally:
        engine.close()


def alone(listed: list[Candidate], results: Results, workers: int) -> None:
    tasks = load_tasks()

    def one(index: int) -> None:
        if (ALONE, index) not in results.verdicts:
            candidate, engine = listed[index], open_backend("interpreter")
            try:
                verdict = Judge(engine, domain="core", limits=LIMITS).judge(tasks[candidate.task], candidate.source)
            finally:
                engine.close()
            results.add(ALONE, index, candidate, verdict.to_json())

    _run(one, len(listed), workers)


def _run(one: Any, count: int, workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(one, index) for index in range(count)]:
            future.result()


def compare(listed: list[Candidate], results: Results) -> int:
    """Print how far the verdicts agree; returns the number that differ."""
    different, kinds = [], Counter[str]()
    for index, candidate in enumerate(listed):
        first, second = (results.verdicts[way, index] for way in (TOGETHER, ALONE))
        kinds[first["failure"]["kind"] if first["failure"] else first["status"]] += 1
        if first != second:
            keys = [key for key in first if first[key] != second.get(key)]
            different.append(f"{index} {candidate.name}: {', '.join(keys)}")
    print(f"{len(listed)} candidates, {len(different)} verdicts differ")
    print("; ".join(f"{kind} {number}" for kind, number in kinds.most_common()))
    print(*different, sep="\n")
    return len(different)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of verdicts, one line each")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    listed, results = candidates(given.candidates), Results(given.out)
    for way, judged in ((TOGETHER, together), (ALONE, alone)):
        begun = time.monotonic()
        judged(listed, results, given.workers)
        print(
            f"{way}: {time.monotonic() - begun:.0f} s here, {results.seconds[way]:.0f} s of judging in all", flush=True
        )
    sys.exit(1 if compare(listed, results) else 0)


if __name__ == "__main__":
    main()
