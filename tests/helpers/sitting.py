"""The loop in a process of its own, over a real server, prompts and run folder; only the judge is a quick stand-in.

`python -m tests.helpers.sitting FOLDER BASE_URL [key=value …]` starts a run in FOLDER, or goes on with the one there, and
prints its outcome as JSON. Tests kill it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from agentloop.client import Client
from agentloop.config import Settings, build
from agentloop.content import find_tasks, load_tasks
from agentloop.episodes import plan
from agentloop.errors import EXIT_INFRASTRUCTURE, StorageError
from agentloop.judging import Judging
from agentloop.loop import Loop
from agentloop.progress import RunProgress
from agentloop.prompting import Prompter
from agentloop.replies import Replies
from agentloop.store import CONFIG_VERSION, Store
from oracle.case import Case, Replay
from oracle.schema import FULL_TIERS, Task
from oracle.tolerance import policy
from oracle.verdict import FAIL, PASS, Counterexample, Failure, NaiveResult, Verdict, candidate_id
from tests.helpers.servers import Behaviour, Handler, completion

ENDPOINT = "stand-in"  # the port differs from test to test; request keys must not
GRADES = 8  # an answer holds `GRADE = g`; the stand-in judge passes grade 0 and fails others, some silently


class StandInBackend:
    """Enough of a backend for what a run says of itself."""

    name, isolation, not_exercised = "interpreter", ("stand-in",), ()

    def close(self) -> None:
        pass


class StandInJudge:
    """Decides by the grade an answer states. Deterministic, and slow enough to be killed at it."""

    tolerance, backend = policy(), StandInBackend()

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.judged: list[tuple[str, str, str]] = []

    def judge(
        self,
        task: Task,
        source: str,
        *,
        stream: str = "score",
        naive: bool = True,
        minimized: bool = True,
        exclude: frozenset[str] = frozenset(),
        forbid: frozenset[str] = frozenset(),
    ) -> Verdict:
        self.judged.append((task.id, candidate_id(source), stream))
        time.sleep(self.seconds)
        grade = int((re.findall(r"GRADE = (\d+)", source) or ["7"])[0])
        verdict = Verdict(
            task.id, candidate_id(source), "interpreter", "full", 0, "derived", dict.fromkeys(FULL_TIERS, PASS)
        )
        if naive:
            verdict.naive = {"kernelbench": NaiveResult(PASS if grade < 4 else FAIL, f"grade {grade}")}
        if grade:
            case = Case(task.id, task.forms[0].name, task.base_dims(), "float32", stream=stream, seed=grade)
            verdict.tiers["shapes"] = FAIL
            verdict.failures["shapes"] = Failure("numerical_mismatch", "shapes", f"grade {grade}")
            shown = [{"shape": [1], "dtype": "float32", "values": [float(grade)], "worst": []}]
            stats = {"max_abs": float("inf")}
            verdict.counterexample = Counterexample(
                Replay(case).token(), case.to_json(), {}, shown, shown, stats, None, 1, None
            )
        return verdict


def digest(body: dict[str, Any]) -> bytes:
    """Two bytes that follow from a request alone."""
    said = json.dumps([body["messages"], body.get("seed"), body["model"]], sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=2).digest()


def graded(handler: Handler, body: dict[str, Any]) -> None:
    """A small deterministic author: what it answers follows from the request alone."""
    grade = digest(body)[0] % GRADES
    text = f"Here:\n```python\nimport torch\n\nGRADE = {grade}\n\ndef f(x):\n    return x\n```\n"
    handler.reply(200, json.dumps(completion(text if grade < 7 else "I would rather not.")).encode())


def slow(seconds: float) -> Behaviour:
    def behaviour(handler: Handler, body: dict[str, Any]) -> None:
        time.sleep(seconds)
        graded(handler, body)

    return behaviour


def settings(**changes: Any) -> Settings:
    given = {"model": "m", "tasks": "seed/*", "samples": 2, "rounds": 3, "concurrency": 6, "tries": 3}
    return build(given | changes, "test")


known_tasks = functools.cache(load_tasks)


async def sit(store: Store, base_url: str, chosen: Settings, judge: Any, pause: float = 0.01) -> dict[str, Any]:
    """All episodes over an open store."""
    tasks = find_tasks(chosen.tasks, known_tasks())
    episodes = plan([chosen], {"m": ["m"]}, tasks)
    about = {"oracle_version": "1", "tolerance": "derived", "backend": "interpreter"}
    client = Client(base_url, "key", tries=chosen.tries, timeout=chosen.timeout, pause=pause)
    with RunProgress(len(episodes)) as progress:
        try:
            replies = Replies(store, client, ENDPOINT, chosen.concurrency)
            judging = Judging(judge, store, chosen.workers or 2, seed=chosen.seed, domain=chosen.domain)
            prompter = Prompter(chosen.prompt_strategy, chosen.feedback)
            prompters = {(chosen.prompt_strategy, chosen.feedback): prompter}
            outcome = await Loop(store, {"m": replies}, judging, prompters, progress, about).run(episodes)
        finally:
            await client.close()
    return {"owed": outcome.owed, "unjudged": outcome.unjudged, "in_doubt": store.in_doubt}


def open_or_create(path: Path) -> Store:
    if (path / "config.json").exists():
        return Store.open(path)
    return Store.create(path, {"version": CONFIG_VERSION, "settings": {}})


def main(folder: str, base_url: str, *pairs: str) -> None:
    changes = {key: json.loads(value) for key, value in (pair.split("=", 1) for pair in pairs)}
    judge = StandInJudge(changes.pop("judge_seconds", 0.0))
    limit = changes.pop("file_limit", resource.RLIM_INFINITY)  # bytes: a write beyond it fails, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with open_or_create(Path(folder)) as store:
            print(json.dumps(asyncio.run(sit(store, base_url, settings(**changes), judge))))
    except StorageError as error:
        print(error)
        sys.exit(EXIT_INFRASTRUCTURE)


if __name__ == "__main__":
    main(*sys.argv[1:])
