"""One sitting of a run: puts authors, prompts, judge and folder together and lets the loop go, new or resumed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agentloop import report, sweep
from agentloop.budget import Budget
from agentloop.client import Client
from agentloop.config import Settings
from agentloop.content import find_tasks, load_tasks
from agentloop.endpoints import Endpoint, Prompters, models_of, open_budget, open_endpoints, open_prompters
from agentloop.episodes import Episode, plan
from agentloop.errors import EXIT_INFRASTRUCTURE, InfrastructureError, StorageError, UsageError
from agentloop.files import read_regular, refuse_locked, unwritable, write_whole
from agentloop.folder import describe, refuse_existing, resume_name, same_judge, same_prompts, same_tasks
from agentloop.judging import Judging, open_judge
from agentloop.loop import Loop, Outcome
from agentloop.progress import RunProgress, announce
from agentloop.replies import Replies
from agentloop.report.console import print_summary
from agentloop.signals import terminate_as_interrupt
from agentloop.store import Store, read_config
from agentloop.sweep import Conditions
from agentloop.timing import time_candidates
from oracle import ORACLE_VERSION
from oracle.backends import open_backend
from oracle.judge import Judge
from oracle.schema import Task
from oracle.speed import check_backend
from oracle.tolerance import check_covered
from oracle.worker.policies import side_by_side


@dataclass(frozen=True)
class Sitting:
    """All that one sitting works with. `conditions` differ in model, prompt strategy, feedback arm and in what is said of
    a model; every other setting is the same in all."""

    conditions: Conditions
    tasks: list[Task]
    endpoints: dict[str, Endpoint]
    prompters: Prompters
    judge: Judge
    budget: Budget

    @property
    def settings(self) -> Settings:
        """What all conditions share."""
        return self.conditions[0]

    @property
    def episodes(self) -> list[Episode]:
        return plan(self.conditions, models_of(self.conditions), self.tasks)

    def config(self) -> dict[str, Any]:
        backend = self.judge.backend
        return describe(self.conditions, self.tasks, self.endpoints, self.prompters, backend, len(self.episodes))


def start(conditions: Conditions, console: Console, source: Path | None = None) -> int:
    """A new run of one condition or more; returns the exit code. `source` is the sweep's file: the folder keeps a copy.
    UsageError where the folder exists or something asked for cannot be."""
    path = Path(conditions[0].runs_dir) / conditions[0].name
    refuse_existing(path, conditions)
    if reason := unwritable(path):
        raise UsageError(f"--runs-dir: {reason}; name a folder that can be written, or make room")
    models_of(conditions)
    announce("reading the tasks")
    tasks = find_tasks(conditions[0].tasks, load_tasks(conditions[0].task_dirs))
    check_covered(conditions[0].tolerance, tasks)
    with _open(conditions, tasks) as sitting, Store.create(path, sitting.config()) as store:
        if source is not None:
            write_whole(path / "sweep.toml", read_regular(source))
        return sit(sitting, store, console)


def resume(path: Path, changes: dict[str, Any], console: Console) -> int:
    """Go on with a run. `changes` are settings that change neither requests nor verdicts (concurrency, budgets, …)."""
    config = read_config(path)
    if reason := unwritable(path):
        raise StorageError(f"{reason}; nothing recorded is lost")
    refuse_locked(path)
    conditions = sweep.stored(config, path, changes)
    announce("reading the tasks")
    tasks = same_tasks(path, config, load_tasks(conditions[0].task_dirs))
    with _open(conditions, tasks) as sitting:
        same_prompts(path, config, sitting.prompters)
        same_judge(path, config, sitting.judge.backend)
        with Store.open(path) as store:
            _tell_resumed(store, console)
            return sit(sitting, store, console)


def sit(sitting: Sitting, store: Store, console: Console) -> int:
    """All that is still to do in an open folder, then tables and page; returns the exit code."""
    name, episodes = resume_name(store.path), sitting.episodes
    sitting.budget.resume(store.requests)
    terminate_as_interrupt()
    try:
        with RunProgress(len(episodes)) as progress:
            outcome = asyncio.run(_loop(sitting, store, progress, episodes))
        if sitting.settings.speed:
            outcome.untimed = time_candidates(store, {task.id: task for task in sitting.tasks}, sitting.judge)
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; `agentloop resume {name}` goes on from here") from None
    except UsageError as error:
        then = f"then `agentloop resume {name}`"
        if not store.answered:
            then = f"then `agentloop resume {name}`, or with other settings `agentloop run` under another --name"
        raise UsageError(f"{error} (nothing recorded is lost; {then})") from None
    except KeyboardInterrupt:
        console.print(f"`agentloop resume {name}` goes on from here", markup=False, soft_wrap=True)
        raise
    return _conclude(sitting, store, outcome, console)


async def _loop(sitting: Sitting, store: Store, progress: RunProgress, episodes: list[Episode]) -> Outcome:
    settings, judge = sitting.settings, sitting.judge
    about = {"oracle_version": ORACLE_VERSION, "tolerance": judge.tolerance.name, "backend": judge.backend.name}
    async with contextlib.AsyncExitStack() as stack:
        replies = {}
        for own in sitting.conditions:
            if own.called not in replies:
                endpoint = sitting.endpoints[own.called]
                client = Client(
                    endpoint.base_url,
                    endpoint.key,
                    timeout=own.timeout,
                    tries=own.tries,
                    per_minute=own.requests_per_minute,
                    accepted=store.has_answers_of(endpoint.models),
                )
                stack.push_async_callback(client.close)
                replies[own.called] = Replies(
                    store,
                    client,
                    endpoint.name,
                    own.concurrency,
                    kind=endpoint.kind,
                    label=own.label,
                    budget=sitting.budget,
                    on_retry=progress.retry,
                )
        workers = settings.workers or side_by_side(judge.backend.name)
        judging = Judging(judge, store, workers, seed=settings.seed, domain=settings.domain)
        return await Loop(store, replies, judging, sitting.prompters, progress, about).run(episodes)


def _conclude(sitting: Sitting, store: Store, outcome: Outcome, console: Console) -> int:
    """Tables, page, what is missing and why; returns the exit code."""
    name = resume_name(store.path)
    owed = f"{outcome.last_fault}; {len(outcome.owed)} owed: `agentloop resume {name}` tries again"
    if not store.attempts and outcome.owed:
        raise InfrastructureError(f"no attempt could be made: {owed}")
    if not store.attempts and outcome.left:
        raise UsageError(f"{outcome.budget}: no request could be sent; `agentloop resume {name}` with a larger budget")
    summary, page = report.write(store.path)
    print_summary(store.path, summary, console)

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(f"asked of the author: {_used(sitting.budget)}")
    say(f"report: {page}")
    if outcome.owed:
        say(f"infrastructure faults, last: {owed}", "yellow")
    if outcome.given_up:
        say(f"{len(outcome.given_up)} episodes given up after faults in a row: `agentloop resume {name}`", "yellow")
    if outcome.left:
        say(
            f"stopped by its budget: {outcome.budget}; {len(outcome.left)} of {len(sitting.episodes)} episodes are not "
            f"done: `agentloop resume {name}` with a larger budget goes on",
            "yellow",
        )
    if outcome.untimed:
        last = outcome.untimed[-1]
        say(
            f"{len(outcome.untimed)} candidates not timed, last: {last}; `agentloop resume {name}` tries again",
            "yellow",
        )
    missing = outcome.untimed or outcome.owed or outcome.given_up or outcome.left or outcome.unjudged
    return EXIT_INFRASTRUCTURE if missing else 0


def _used(budget: Budget) -> str:
    priced = any(price.prompt or price.completion for price in budget.prices.values())
    return f"{budget.spent}, cost {budget.spent.money:.4g}" if priced else str(budget.spent)


@contextlib.contextmanager
def _open(conditions: Conditions, tasks: list[Task]) -> Iterator[Sitting]:
    """Everything but the folder; what is missing or wrong is said before anything is done."""
    settings = conditions[0]
    if settings.speed:
        check_backend(settings.backend)
    budget = open_budget(conditions)
    with open_endpoints(conditions) as endpoints:
        words = open_prompters(conditions, tasks)
        announce(f"starting the judge, backend {settings.backend}")
        backend = open_backend(settings.backend, allow_unsafe=settings.allow_unsafe)
        try:
            yield Sitting(conditions, tasks, endpoints, words, open_judge(backend, settings), budget)
        finally:
            backend.close()


def _tell_resumed(store: Store, console: Console) -> None:
    console.print(f"{store.path}: {len(store.attempts)} attempts are recorded", markup=False, soft_wrap=True)
    if store.in_doubt:
        ids = ", ".join(store.in_doubt)
        console.print(
            f"requests in doubt (sent, no response stored; sent again now): {len(store.in_doubt)}: {ids}",
            markup=False,
            soft_wrap=True,
        )
