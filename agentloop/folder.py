"""A run's `config.json`: what is written of a run, and whether one that exists may go on as it is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentloop import prompting, sweep
from agentloop.endpoints import Endpoint, Prompters, endpoint_names
from agentloop.errors import UsageError
from agentloop.machine import git_commit, hardware, versions
from agentloop.store import CONFIG_VERSION, read_config
from agentloop.sweep import Conditions
from oracle import ORACLE_VERSION
from oracle.schema import Task
from oracle.worker.protocol import Backend


def describe(
    conditions: Conditions,
    tasks: Sequence[Task],
    endpoints: Mapping[str, Endpoint],
    words: Prompters,
    backend: Backend,
    episodes: int,
) -> dict[str, Any]:
    """What `config.json` says of a new run."""
    return {
        "version": CONFIG_VERSION,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **sweep.to_config(conditions),
        "author": endpoint_names(endpoints, "kind"),
        "endpoint": endpoint_names(endpoints, "name"),
        "models": [model for endpoint in endpoints.values() for model in endpoint.models],
        "tasks": {task.id: task.digest for task in tasks},
        "prompts": _prompt_digests(words),
        "episodes": episodes,
        "oracle_version": ORACLE_VERSION,
        "backend": backend.name,
        "isolation": list(backend.isolation),
        "not_exercised": list(backend.not_exercised),
        "versions": versions(),
        "hardware": hardware(),
        "git_commit": git_commit(),
    }


def refuse_existing(path: Path, conditions: Conditions) -> None:
    """UsageError where a run folder exists, with what differs and the command that works."""
    if not (path / "config.json").exists():
        return
    differing = sweep.differences(sweep.stored(read_config(path), path, {}), conditions)
    name = resume_name(path)
    if not differing:
        raise UsageError(f"{path} exists with these settings: `agentloop resume {name}` goes on with it")
    raise UsageError(
        f"{path} exists with other settings ({'; '.join(differing)}): go on with it as it is by `agentloop resume {name}`, "
        f"or give another --name"
    )


def same_tasks(path: Path, config: Mapping[str, Any], known: dict[str, Task]) -> list[Task]:
    """The run's tasks, unchanged since it began."""
    then = config.get("tasks")
    if not then:
        raise UsageError(f"{path}/config.json names no task: it cannot be gone on with; nothing was changed")
    changed = [name for name, digest in then.items() if name not in known or known[name].digest != digest]
    if changed:
        raise UsageError(
            f"{path}: the tasks {', '.join(changed)} changed since the run began; restore them, or start another run: "
            f"`agentloop run --name NEW …`"
        )
    return [known[name] for name in then]


def _prompt_digests(words: Prompters) -> dict[str, str]:
    """A digest of all templates behind each prompt strategy and arm; recorded prompts have none."""
    own = {pair: prompter for pair, prompter in words.items() if isinstance(prompter, prompting.Prompter)}
    return {" · ".join(pair): prompter.digest for pair, prompter in own.items()}


def same_prompts(path: Path, config: Mapping[str, Any], words: Prompters) -> None:
    """UsageError where templates changed since the run began."""
    stored = config.get("prompts", {})
    changed = [name for name, now in _prompt_digests(words).items() if stored.get(name, now) != now]
    if changed:
        raise UsageError(
            f"{path}: the prompts of {', '.join(changed)} changed since the run began; restore them to resume, or start "
            f"another run with another --name"
        )


def same_judge(path: Path, config: Mapping[str, Any], backend: Backend) -> None:
    """UsageError where oracle or backend are not those that the run began with."""
    for key, now in (("oracle_version", ORACLE_VERSION), ("backend", backend.name)):
        if (then := config.get(key)) != now:
            raise UsageError(
                f"{path}: {key} was {then!r} and is now {now!r}; its verdicts cannot be mixed: start another run, "
                f"`agentloop run --name NEW …`"
            )


def resume_name(path: Path) -> str:
    """RUN as `agentloop resume` needs it: the name alone where the default --runs-dir holds it."""
    return path.name if path.parent == Path("runs") else str(path)
