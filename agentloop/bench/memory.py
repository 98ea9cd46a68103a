"""Memory over a long run: the judge's process and its warm parents, as candidates come and go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from agentloop.bench import Figure
from agentloop.bench.candidates import Sample
from oracle.judge import Judge
from oracle.worker.protocol import Backend

PART = "memory"
WARM_UP = 0.2  # of the run: until then references are still being computed and caches filled


def measure(backend: Backend, samples: Sequence[Sample], count: int, workers: int) -> list[Figure]:
    """`count` judgements of the samples in turn; growth is from the end of the warm-up to the end."""
    judge = Judge(backend, domain="core", limit=8)
    early = max(len(samples), int(WARM_UP * count))
    order = list(islice(cycle(samples), early + count))
    readings = []
    with ThreadPoolExecutor(workers) as pool:
        for part in (order[:early], order[early:]):
            for _ in pool.map(lambda sample: judge.judge(sample.task, sample.source, minimized=False), part):
                pass
            time.sleep(0.5)  # the last candidates' processes end
            readings.append({"judge": resident("self"), "workers": sum(map(resident, descendants("self")))})
    before, after = readings
    return [
        figure
        for name in after
        for figure in (
            Figure(PART, f"{name}, resident", after[name], "MiB", note=f"after {early + count} candidates"),
            Figure(
                PART,
                f"{name}, growth",
                100 * (after[name] / before[name] - 1),
                "%",
                5.0,
                note=f"over {count} candidates after {early}",
            ),
        )
    ]


def descendants(process: str) -> list[str]:
    """Processes below one: warm parents, while no candidate runs."""
    children = [name for path in Path(f"/proc/{process}/task").glob("*/children") for name in path.read_text().split()]
    return [*children, *(name for child in children for name in descendants(child))]


def resident(process: str) -> float:
    """MiB of a process that lie in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
