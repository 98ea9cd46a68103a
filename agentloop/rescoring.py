"""A run's stored candidates judged anew, with another tolerance, backend, seed, domain or oracle. No model is asked.

The verdicts make a run folder of their own, with the answers beside them: the run they came from is only read. Scores, naive
checks and counterexamples are judged again; what an author was told, and when an episode ended, stays as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from agentloop import report, sweep
from agentloop.config import Settings, build, option
from agentloop.content import find_tasks, load_tasks
from agentloop.errors import EXIT_INFRASTRUCTURE, InfrastructureError, UsageError
from agentloop.files import read_regular, refuse_locked, unwritable, write_whole
from agentloop.folder import resume_name
from agentloop.judging import JudgeFailed, Judging, ask, open_judge, to_record
from agentloop.machine import git_commit, hardware, versions
from agentloop.progress import RunProgress, announce
from agentloop.records import Attempt
from agentloop.report.console import print_summary
from agentloop.scoring import load_attempts
from agentloop.signals import terminate_as_interrupt
from agentloop.store import Store, find_run, read_config
from agentloop.timing import time_candidates
from oracle import ORACLE_VERSION
from oracle.backends import open_backend
from oracle.judge import Judge
from oracle.schema import Task
from oracle.verdict import UNJUDGED
from oracle.worker.policies import side_by_side
from oracle.worker.protocol import Backend

FAULTS_IN_A_ROW = 3  # of the judge: it would only go on failing
CHANGED = ("tolerance", "backend", "domain", "seed", "tasks", "task_dirs")  # settings that a rescoring may give anew


@dataclass
class Outcome:
    """Attempts owed to faults of the judge, the last of these, and candidates that could not be timed."""

    owed: list[str] = field(default_factory=list)
    untimed: list[str] = field(default_factory=list)
    last_fault: str = ""


def start(source: Path, given: Mapping[str, Any], name: str, runs_dir: str, console: Console) -> int:
    """Judge the attempts of `source` into a run folder of their own, or go on with that; returns the exit code.

    `given` are settings that differ from the source's (None: as there), `workers` and `allow_unsafe` among them. UsageError
    where the folder holds anything but this rescoring.
    """
    changes = {key: given[key] for key in CHANGED if given.get(key) is not None}
    name = name or "-".join([source.name, "rescored", *(_plain(value) for value in changes.values())])
    build({"name": name, **{key: value for key, value in changes.items() if key != "tasks"}}, "rescore")
    path = Path(runs_dir) / name
    origin = {"run": str(source), "changes": changes, "command": _command(source, changes, path)}
    if (path / "config.json").exists() and read_config(path).get("rescored") != origin:
        raise UsageError(f"{path} exists and is not this rescoring; choose another --name")
    return _sit(source, path, origin, given, console)


def resume(path: Path, given: Mapping[str, Any], console: Console) -> int:
    """Go on with a rescoring that was stopped or is owed attempts."""
    origin = read_config(path)["rescored"]
    source = find_run(origin["run"], path.parent)
    return _sit(source, path, origin, {**origin["changes"], **given}, console)


def _sit(source: Path, path: Path, origin: dict[str, Any], given: Mapping[str, Any], console: Console) -> int:
    if reason := unwritable(path):
        raise UsageError(f"--runs-dir: {reason}; name a folder that can be written, or make room")
    if path.exists():
        refuse_locked(path)
    config = read_config(source)
    conditions = sweep.stored(config, path, {key: value for key, value in given.items() if key != "tasks"})
    settings = conditions[0]
    attempts = load_attempts(source)
    announce("reading the tasks")
    tasks = _tasks(given.get("tasks"), load_tasks(settings.task_dirs), config, attempts)
    attempts = [attempt for attempt in attempts if attempt.task in tasks]
    if not attempts:
        raise UsageError(f"RUN {resume_name(source)} has no attempt of these tasks; `agentloop show` lists what it has")
    announce(f"starting the judge, backend {settings.backend}")
    backend = open_backend(settings.backend, allow_unsafe=settings.allow_unsafe)
    try:
        judge = open_judge(backend, settings)
        about = _describe(config, conditions, tasks, backend) | {"rescored": origin}
        with _store(path, about) as store:
            _keep_sweep_file(source, path)
            rescoring = Rescoring(source, store, tasks, judge, settings)
            outcome = _judge(rescoring, attempts, path, console)
            if settings.speed:
                outcome.untimed = time_candidates(store, tasks, judge)
            return _conclude(path, attempts, outcome, console)
    finally:
        backend.close()


def _judge(rescoring: Rescoring, attempts: Sequence[Attempt], path: Path, console: Console) -> Outcome:
    command = f"`agentloop resume {resume_name(path)}` goes on from here"
    terminate_as_interrupt()
    try:
        with RunProgress(len(attempts), what="attempts") as progress:
            return asyncio.run(rescoring.run(attempts, progress))
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; {command}") from None
    except KeyboardInterrupt:
        console.print(command, markup=False, soft_wrap=True)
        raise


class Rescoring:
    """Judges attempts that are not in `store` yet, several side by side; equal candidates once."""

    def __init__(self, source: Path, store: Store, tasks: Mapping[str, Task], judge: Judge, settings: Settings) -> None:
        self.source, self.store, self.tasks, self.judge, self.settings = source, store, tasks, judge, settings
        self.workers = settings.workers or side_by_side(judge.backend.name)
        self.outcome = Outcome()
        self._in_a_row = 0

    async def run(self, attempts: Sequence[Attempt], progress: RunProgress) -> Outcome:
        """Raises UsageError for what cannot be judged so, InfrastructureError where the judge fails again and again."""
        judging = Judging(self.judge, self.store, self.workers, seed=self.settings.seed, domain=self.settings.domain)
        waiting = iter(attempts)
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(2 * self.workers):
                    lanes.create_task(self.lane(waiting, judging, progress))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            judging.stop()
        return self.outcome

    async def lane(self, waiting: Iterator[Attempt], judging: Judging, progress: RunProgress) -> None:
        for attempt in waiting:
            if attempt.attempt_id not in self.store.attempts:
                try:
                    progress.attempt(self.store.add(await self.again(attempt, judging)))
                    if attempt.candidate_id is not None:  # an answer without code says nothing of the judge
                        self._in_a_row = 0
                except JudgeFailed as fault:
                    self.owe(attempt, fault, progress)
            progress.ended()

    async def again(self, attempt: Attempt, judging: Judging) -> Attempt:
        """The attempt with a new score. Cases that its author was shown as feedback stay out of it."""
        score = attempt.score
        excluded, forbidden = (score.excluded, score.forbidden) if score else ([], [])
        task, source = self.tasks[attempt.task], self.candidate(attempt)
        question = ask(task, source, "score", minimized=True, excluded=frozenset(excluded), forbidden=tuple(forbidden))
        verdict = await judging.verdict(task, source, question)
        self.keep_response(attempt)
        changed = {
            "task_hash": task.digest,
            "oracle_version": ORACLE_VERSION,
            "tolerance": self.judge.tolerance.name,
            "backend": self.judge.backend.name,
            "domain": self.settings.domain,
            "seed": self.settings.seed,
            "candidate_id": self.store.save_candidate(source) if source is not None else None,
            "naive": {name: asdict(result) for name, result in verdict.naive.items()},
            "score": to_record(verdict, question, self.store),
            "status": verdict.status,
            "status_stated": verdict.status_over(tuple(attempt.tiers_stated)),
            "timings": attempt.timings | {"score": round(verdict.seconds, 3)},
            "rescored_from": str(self.source),
            "time": time.time(),
        }
        return attempt.model_copy(update=changed)

    def candidate(self, attempt: Attempt) -> str | None:
        """The source as it was judged, byte for byte; None where the answer held no code."""
        if attempt.candidate_id is None:
            return None
        file = self.source / "candidates" / f"{attempt.candidate_id}.py"
        try:
            return read_regular(file).decode("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}; without the candidate it cannot be judged again") from None

    def keep_response(self, attempt: Attempt) -> None:
        """The answer beside its verdict, as it was stored; one that is gone is left out."""
        name = f"{attempt.response_id}.json"
        here, there = self.store.path / "responses" / name, self.source / "responses" / name
        if attempt.response_id is not None and not here.exists():
            with contextlib.suppress(FileNotFoundError):
                write_whole(here, read_regular(there))

    def owe(self, attempt: Attempt, fault: JudgeFailed, progress: RunProgress) -> None:
        self.store.fault(attempt.attempt_id, "judge", str(fault), fault.detail)
        progress.fault(attempt.attempt_id, str(fault))
        self.outcome.owed.append(attempt.attempt_id)
        self.outcome.last_fault = str(fault)
        self._in_a_row += not fault.alone
        if self._in_a_row >= FAULTS_IN_A_ROW:
            raise InfrastructureError(f"stopped after {FAULTS_IN_A_ROW} judge faults in a row; last: {fault}")


def _tasks(
    globs: str | None, known: dict[str, Task], config: Mapping[str, Any], attempts: Sequence[Attempt]
) -> dict[str, Task]:
    """The run's tasks, as they are today, that `globs` names (all without)."""
    names = config.get("tasks") or dict.fromkeys(attempt.task for attempt in attempts)
    gone = [name for name in names if name not in known]
    if gone and globs is None:
        raise UsageError(f"the tasks {', '.join(gone)} are no longer there; name others with --tasks, or --task-dir")
    chosen = {task.id for task in find_tasks(globs, known)} if globs else set(known)
    return {name: known[name] for name in names if name in chosen}


def _describe(
    config: Mapping[str, Any], conditions: sweep.Conditions, tasks: Mapping[str, Task], backend: Backend
) -> dict[str, Any]:
    """The source's config.json with what is judged anew, and by what."""
    every = config.get("tasks") or tasks
    planned = config.get("episodes")
    return {
        **config,
        **sweep.to_config(conditions),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tasks": {name: task.digest for name, task in tasks.items()},
        "episodes": planned and planned * len(tasks) // len(every),
        "oracle_version": ORACLE_VERSION,
        "backend": backend.name,
        "isolation": list(backend.isolation),
        "not_exercised": list(backend.not_exercised),
        "versions": versions(),
        "hardware": hardware(),
        "git_commit": git_commit(),
    }


def _store(path: Path, config: dict[str, Any]) -> Store:
    """The rescoring's folder, new or gone on with. UsageError where its verdicts would be mixed with others."""
    if not (path / "config.json").exists():
        return Store.create(path, config)
    then = read_config(path)
    for key in ("oracle_version", "backend", "tasks"):
        if then.get(key) != config[key]:
            what = "the tasks" if key == "tasks" else f"{key} ({then.get(key)}, now {config[key]})"
            raise UsageError(f"{path}: {what} changed since this rescoring began; start another with another --name")
    return Store.open(path)


def _keep_sweep_file(source: Path, path: Path) -> None:
    file = source / "sweep.toml"
    if file.is_file() and not (path / file.name).exists():
        write_whole(path / file.name, read_regular(file))


def _conclude(path: Path, before: Sequence[Attempt], outcome: Outcome, console: Console) -> int:
    """Tables, page, which verdicts changed, what is owed; returns the exit code."""
    summary, page = report.write(path)
    print_summary(path, summary, console)

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    after = {attempt.attempt_id: attempt.status_stated for attempt in load_attempts(path)}
    say(f"report: {page}")
    changed = [
        f"{attempt.attempt_id}: {attempt.status_stated}, now {after[attempt.attempt_id]}"
        for attempt in before
        if after.get(attempt.attempt_id, attempt.status_stated) != attempt.status_stated
    ]
    say(f"{len(changed)} of {len(after)} verdicts over the stated tiers changed")
    for line in changed:
        say(f"  {line}")
    if outcome.owed:
        name = resume_name(path)
        say(f"{len(outcome.owed)} owed, last: {outcome.last_fault}; `agentloop resume {name}` tries again", "yellow")
    if outcome.untimed:
        say(
            f"{len(outcome.untimed)} not timed, last: {outcome.untimed[-1]}; `agentloop resume {resume_name(path)}`",
            "yellow",
        )
    return EXIT_INFRASTRUCTURE if outcome.owed or outcome.untimed or UNJUDGED in after.values() else 0


def _command(source: Path, changes: Mapping[str, Any], path: Path) -> str:
    """The command that does the same again."""
    words = ["agentloop", "rescore", resume_name(source)]
    for key, value in changes.items():
        for one in value if isinstance(value, tuple | list) else [value]:
            words += [option(key), str(one)]
    return shlex.join([*words, "--name", f"{path.name}-again"])


def _plain(value: Any) -> str:
    """A setting's value as part of a folder's name."""
    text = "-".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return re.sub(r"[^A-Za-z0-9._]", "-", text).strip("-")
