"""One sitting of a run: puts author, prompts, judge and folder together and lets the loop go, new or resumed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agentloop import Prompt, Prompter, authors, prompting, report
from agentloop.authors import recorded
from agentloop.client import Client
from agentloop.config import Settings, api_key, build, differences
from agentloop.content import find_tasks, load_tasks
from agentloop.episodes import Episode, most_requests, plan
from agentloop.errors import EXIT_INFRASTRUCTURE, InfrastructureError, UsageError
from agentloop.judging import Judging
from agentloop.loop import Loop, Outcome
from agentloop.machine import git_commit, hardware, versions
from agentloop.progress import RunProgress
from agentloop.replies import Replies
from agentloop.report.console import print_summary
from agentloop.store import CONFIG_VERSION, Store, read_config
from oracle import ORACLE_VERSION
from oracle.backends import open_backend
from oracle.judge import Judge
from oracle.schema import Task
from oracle.verdict import NaiveResult, Verdict
from oracle.worker.protocol import Backend


@dataclass(frozen=True)
class Endpoint:
    """Where answers come from. `name` stands for it in request keys; `kind` is "model", "offline" or "recorded"."""

    base_url: str
    key: str
    name: str
    kind: str
    models: tuple[str, ...]


class RecordedPrompts:
    """The requests that recorded answers were given to (a `Prompter`); there is no second round."""

    def __init__(self, prompts: dict[str, Prompt]) -> None:
        self._prompts = prompts

    def first(self, task: Task) -> Prompt:
        return self._prompts[task.id]

    def next(
        self,
        task: Task,
        before: Prompt,
        answer: str,
        source: str | None,
        verdict: Verdict | None,
        naive: NaiveResult | None = None,
    ) -> Prompt:
        raise UsageError("--rounds must be 1 with --model recorded:PATH: a recorded answer has no second round")


def start(settings: Settings, console: Console) -> int:
    """A new run; returns the exit code. UsageError where the folder exists or something asked for cannot be."""
    path = Path(settings.runs_dir) / settings.name
    _refuse_existing(path, settings)
    if settings.recorded:
        recorded.models(settings.recording)
    tasks = find_tasks(settings.tasks, load_tasks(settings.task_dirs))
    with _endpoint(settings) as endpoint:
        prompter = _prompter(settings, tasks)
        with _judge(settings) as judge:
            config = _config(settings, tasks, endpoint, judge.backend)
            with Store.create(path, config) as store:
                return _sit(settings, tasks, endpoint, prompter, judge, store, console)


def resume(path: Path, changes: dict[str, Any], console: Console) -> int:
    """Go on with a run. `changes` are settings that change neither requests nor verdicts (concurrency, workers, …)."""
    config = read_config(path)
    stored = config["settings"] | {"runs_dir": str(path.parent), "name": path.name}
    settings = build(
        stored | {key: value for key, value in changes.items() if value is not None}, f"{path}/config.json"
    )
    tasks = _same_tasks(path, config, load_tasks(settings.task_dirs))
    with _endpoint(settings) as endpoint:
        prompter = _prompter(settings, tasks)
        with _judge(settings) as judge:
            _same_judge(path, config, judge.backend)
            with Store.open(path) as store:
                _tell_resumed(store, console)
                return _sit(settings, tasks, endpoint, prompter, judge, store, console)


def dry_run(settings: Settings, console: Console) -> None:
    """Say what a run would do, and do nothing."""
    tasks = find_tasks(settings.tasks, load_tasks(settings.task_dirs))
    models = recorded.models(settings.recording) if settings.recorded else (settings.model,)
    prompter = _prompter(settings, tasks)
    episodes = plan(settings, models, tasks)
    requests = most_requests(settings, episodes)
    characters = sum(len(m["content"]) for task in tasks for m in prompter.first(task).messages)
    console.print(f"{len(tasks)} tasks: {', '.join(task.id for task in tasks)}", soft_wrap=True)
    console.print(f"{len(episodes)} episodes of at most {settings.rounds} rounds: at most {requests} requests")
    console.print(f"first prompts: {characters // len(tasks)} characters on average")
    if settings.max_tokens is not None:
        console.print(
            f"at most {requests * settings.max_tokens} tokens of answers (--max-tokens {settings.max_tokens})"
        )


def _sit(
    settings: Settings,
    tasks: list[Task],
    endpoint: Endpoint,
    prompter: Prompter,
    judge: Judge,
    store: Store,
    console: Console,
) -> int:
    episodes = plan(settings, endpoint.models, tasks)
    name = resume_name(store.path)
    about = {
        "author": endpoint.kind,
        "oracle_version": ORACLE_VERSION,
        "tolerance": judge.tolerance.name,
        "backend": judge.backend.name,
    }
    _terminate_as_interrupt()
    try:
        with RunProgress(len(episodes)) as progress:
            outcome = asyncio.run(_loop(settings, endpoint, prompter, judge, store, progress, about, episodes))
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; `agentloop resume {name}` goes on from here") from None
    except UsageError as error:
        raise UsageError(f"{error} (nothing recorded is lost; then `agentloop resume {name}`)") from None
    except KeyboardInterrupt:
        console.print(f"`agentloop resume {name}` goes on from here", markup=False, soft_wrap=True)
        raise
    owed = f"{outcome.last_fault}; {len(outcome.owed)} owed: `agentloop resume {name}` tries again"
    if outcome.owed and not store.attempts:
        raise InfrastructureError(f"no attempt could be made: {owed}")
    _conclude(store, console)
    if outcome.owed:
        console.print(f"infrastructure faults, last: {owed}", style="yellow", markup=False, soft_wrap=True)
    return EXIT_INFRASTRUCTURE if outcome.owed or outcome.unjudged else 0


async def _loop(
    settings: Settings,
    endpoint: Endpoint,
    prompter: Prompter,
    judge: Judge,
    store: Store,
    progress: RunProgress,
    about: dict[str, Any],
    episodes: list[Episode],
) -> Outcome:
    client = Client(
        endpoint.base_url,
        endpoint.key,
        timeout=settings.timeout,
        tries=settings.tries,
        per_minute=settings.requests_per_minute,
        on_retry=progress.retry,
    )
    try:
        replies = Replies(store, client, endpoint.name, settings.concurrency)
        judging = Judging(judge, store, settings.workers, seed=settings.seed, domain=settings.domain)
        return await Loop(settings, store, replies, judging, prompter, progress, about).run(episodes)
    finally:
        await client.close()


@contextlib.contextmanager
def _endpoint(settings: Settings) -> Iterator[Endpoint]:
    if not settings.builtin:
        url = settings.endpoint()
        yield Endpoint(url, api_key(), url, "model", (settings.model,))
        return
    if settings.base_url is not None:
        raise UsageError(f"--base-url has no meaning with --model {settings.model}: that author brings its own server")
    with authors.start(settings.model, settings.seed) as author:
        yield Endpoint(author.base_url, "built-in", author.name, author.kind, author.models)


@contextlib.contextmanager
def _judge(settings: Settings) -> Iterator[Judge]:
    backend = open_backend(settings.backend, allow_unsafe=settings.allow_unsafe)
    try:
        yield Judge(backend, tolerance=settings.tolerance, domain=settings.domain, seed=settings.seed)
    finally:
        backend.close()


def _prompter(settings: Settings, tasks: list[Task]) -> Prompter:
    if settings.recorded:
        return RecordedPrompts(recorded.prompts(settings.recording, tasks))
    return prompting.Prompter(settings.prompt_strategy, settings.feedback, settings.prompt_dirs)


def _config(settings: Settings, tasks: list[Task], endpoint: Endpoint, backend: Backend) -> dict[str, Any]:
    return {
        "version": CONFIG_VERSION,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "settings": settings.model_dump(mode="json"),
        "author": endpoint.kind,
        "endpoint": endpoint.name,
        "models": list(endpoint.models),
        "tasks": {task.id: task.digest for task in tasks},
        "episodes": len(plan(settings, endpoint.models, tasks)),
        "oracle_version": ORACLE_VERSION,
        "backend": backend.name,
        "isolation": list(backend.isolation),
        "not_exercised": list(backend.not_exercised),
        "versions": versions(),
        "hardware": hardware(),
        "git_commit": git_commit(),
    }


def _refuse_existing(path: Path, settings: Settings) -> None:
    if not (path / "config.json").exists():
        return
    stored = build(read_config(path)["settings"], f"{path}/config.json")
    differing = differences(stored, settings)
    name = resume_name(path)
    if not differing:
        raise UsageError(f"{path} exists with these settings: `agentloop resume {name}` goes on with it")
    raise UsageError(
        f"{path} exists with other settings ({'; '.join(differing)}): go on with it as it is by `agentloop resume {name}`, "
        f"or give another --name"
    )


def _same_tasks(path: Path, config: dict[str, Any], known: dict[str, Task]) -> list[Task]:
    """The run's tasks, unchanged since it began."""
    changed = [name for name, digest in config["tasks"].items() if name not in known or known[name].digest != digest]
    if changed:
        raise UsageError(
            f"{path}: the tasks {', '.join(changed)} changed since the run began; restore them, or start another run: "
            f"`agentloop run --name NEW …`"
        )
    return [known[name] for name in config["tasks"]]


def _same_judge(path: Path, config: dict[str, Any], backend: Backend) -> None:
    for key, now in (("oracle_version", ORACLE_VERSION), ("backend", backend.name)):
        if config[key] != now:
            raise UsageError(
                f"{path}: {key} was {config[key]!r} and is now {now!r}; its verdicts cannot be mixed: start another run, "
                f"`agentloop run --name NEW …`"
            )


def _tell_resumed(store: Store, console: Console) -> None:
    console.print(f"{store.path}: {len(store.attempts)} attempts are recorded", markup=False, soft_wrap=True)
    if store.in_doubt:
        ids = ", ".join(store.in_doubt)
        console.print(
            f"requests in doubt (sent, no response stored; sent again now): {len(store.in_doubt)}: {ids}",
            markup=False,
            soft_wrap=True,
        )


def _conclude(store: Store, console: Console) -> None:
    """The final tables and the page."""
    summary, page = report.write(store.path)
    print_summary(store.path, summary, console)
    console.print(f"report: {page}", markup=False, soft_wrap=True)


def resume_name(path: Path) -> str:
    """RUN as `agentloop resume` needs it: the name alone where the default --runs-dir holds it."""
    return path.name if path.parent == Path("runs") else str(path)


def _terminate_as_interrupt() -> None:
    """SIGTERM ends a run as Ctrl-C does: records closed, candidates' processes killed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
