"""The loop's own cost: processor time per attempt, with a server that answers at once and a judge that decides at once."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from agentloop.bench import Figure
from agentloop.client import Client
from agentloop.config import build
from agentloop.endpoints import Prompters
from agentloop.episodes import plan
from agentloop.errors import InfrastructureError
from agentloop.judging import Judging
from agentloop.loop import Loop
from agentloop.progress import RunProgress
from agentloop.prompting import Prompter
from agentloop.replies import Replies
from agentloop.store import CONFIG_VERSION, Store
from oracle.corpus import BUG, kernels
from oracle.judge import Judge
from oracle.schema import Task
from oracle.verdict import Verdict, candidate_id
from oracle.worker.protocol import Backend

PART = "loop"
KERNEL = "softmax__bug_other_zero"
ROUNDS, CONCURRENCY = 3, 50


def measure(backend: Backend, tasks: Mapping[str, Task], attempts: int) -> list[Figure]:
    """About `attempts` attempts at one task, none of which passes; each fifth of them is timed."""
    kernel = next(kernel for kernel in kernels("seed", label=BUG) if kernel.name == KERNEL)
    judge = Instant(backend, tasks[kernel.task], kernel.source)
    command = [sys.executable, "-m", "agentloop.bench.echo", str(kernel.path)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            url = server.stdout.readline().strip() if server.stdout else ""
            if not url:
                raise InfrastructureError("the loopback server of the measurement does not start")
            begun = time.process_time()
            asyncio.run(_run(judge, tasks[kernel.task], url, Path(folder) / "run", -(-attempts // ROUNDS)))
            whole = time.process_time() - begun
        finally:
            server.terminate()
    fifth = len(judge.times) // 5
    first, last = (judge.times[end] - judge.times[start] for start, end in ((fifth, 2 * fifth), (-fifth - 1, -1)))
    count = len(judge.times)
    note = f"{count} attempts, {CONCURRENCY} concurrent requests"
    return [
        Figure(PART, "processor time per attempt", 1000 * whole / count, "ms", 10.0, note=note),
        Figure(PART, "the second fifth", 1000 * first / fifth, "ms", note="per attempt; the first fifth warms up"),
        Figure(PART, "the last fifth", 1000 * last / fifth, "ms", note="per attempt"),
        Figure(PART, "growth, last against second", 100 * (last / first - 1), "%", 10.0),
    ]


class Instant:
    """A judge that says of every candidate what the real one said of one wrong kernel. `times`: processor seconds at each
    attempt."""

    def __init__(self, backend: Backend, task: Task, source: str) -> None:
        real = Judge(backend, domain="core")
        self.said = {stream: real.judge(task, source, stream=stream) for stream in ("score", "feedback")}
        self.times: list[float] = []

    def judge(self, task: Task, source: str, *, stream: str = "score", **_: Any) -> Verdict:
        if stream == "score":
            self.times.append(time.process_time())
        return dataclasses.replace(self.said[stream], candidate=candidate_id(source))


async def _run(judge: Instant, task: Task, url: str, folder: Path, samples: int) -> None:
    given = {"model": "echo", "tasks": task.id, "samples": samples, "rounds": ROUNDS, "concurrency": CONCURRENCY}
    settings = build(given, "bench")
    about = {"oracle_version": "1", "tolerance": "derived", "backend": "interpreter"}
    pair = settings.prompt_strategy, settings.feedback
    prompters: Prompters = {pair: Prompter(*pair)}
    episodes = plan([settings], {"echo": ["echo"]}, [task])
    client = Client(url, "no key is needed")
    quiet = Console(file=io.StringIO())
    with (
        Store.create(folder, {"version": CONFIG_VERSION, "settings": {}}) as store,
        RunProgress(len(episodes), quiet) as progress,
    ):
        try:
            judging = Judging(judge, store, 2, seed=settings.seed, domain=settings.domain)
            replies = {"echo": Replies(store, client, "echo", CONCURRENCY)}
            await Loop(store, replies, judging, prompters, progress, about).run(episodes)
        finally:
            await client.close()
