"""What a process costs: started warm or fresh, and how much faster two candidates side by side are than one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from agentloop.bench import Figure, middle
from agentloop.bench.candidates import Sample
from oracle import clock
from oracle.backends import WorkerBackend
from oracle.judge import Judge
from oracle.layouts import place
from oracle.worker.protocol import Backend, Call

PART = "pool"
TRIVIAL = "def entry(x):\n    return x\n"


def measure(backend: Backend, samples: Sequence[Sample], starts: int, repeats: int) -> list[Figure]:
    """`starts` processes one after the other; then `repeats` times a fresh warm parent, and all samples by one and by two
    threads."""
    warm = [started(backend) for _ in range(starts)]
    fresh = [_fresh(backend.name) for _ in range(repeats)]
    judge = Judge(backend, domain="core")
    side_by_side(judge, samples, 2)  # references are computed, files read
    pairs = [(side_by_side(judge, samples, 1), side_by_side(judge, samples, 2)) for _ in range(repeats)]
    ratios = [one / two for one, two in pairs]
    note = f"{len(samples)} right candidates, median of {repeats}: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    return [
        Figure(PART, "start of a judged candidate", 1000 * middle(warm), "ms", 60.0, note=f"median of {starts}"),
        Figure(PART, "a fresh process", 1000 * middle(fresh), "ms", note="a new warm parent and one start"),
        Figure(PART, "fresh against warm", middle(fresh) / middle(warm), "x"),
        Figure(PART, "two workers against one", middle(ratios), "x", 1.8, at_most=False, note=note),
        Figure(PART, "candidates a minute, one worker", 60 * len(samples) / middle(one for one, _ in pairs), "/min"),
        Figure(PART, "candidates a minute, two workers", 60 * len(samples) / middle(two for _, two in pairs), "/min"),
    ]


def started(backend: Backend) -> float:
    """Seconds until a process of a trivial candidate is forked, contained and ready, its own code left out."""
    clock.taken()
    session = backend.open(TRIVIAL, "entry")
    try:
        session.call(Call((place("x", "float32", np.zeros(4, np.float32), "contiguous"),)), timeout=60.0)
    finally:
        session.close()
    return clock.taken()[0]["start"]


def _fresh(name: str) -> float:
    begun = time.monotonic()
    backend = WorkerBackend(name, allow_unsafe=True)
    try:
        started(backend)
        return time.monotonic() - begun
    finally:
        backend.close()


def side_by_side(judge: Judge, samples: Sequence[Sample], workers: int) -> float:
    """Seconds that some threads need to judge all samples."""
    begun = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(judge.judge, sample.task, sample.source) for sample in samples]:
            future.result()
    return time.monotonic() - begun
