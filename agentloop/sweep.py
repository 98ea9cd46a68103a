"""What a run or a sweep asks: its conditions, each the settings of one (model, prompt strategy, feedback arm).

A sweep's file is a run's file of settings in which `model`, `prompt_strategy` and `feedback` may be lists, and a model may
be a table with settings of its own (`MODEL_SETTINGS`). All combinations are asked, in one run folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from agentloop.config import AXES, NEUTRAL, Settings, build, option, read_toml
from agentloop.errors import UsageError

Conditions = tuple[Settings, ...]

# What a model's own table may set: how it is reached and how it samples. All else is the same for every model.
MODEL_SETTINGS = (
    *("model", "label", "base_url", "key_variable", "temperature", "top_p", "max_tokens", "extra_body"),
    *("timeout", "tries", "requests_per_minute", "concurrency"),
)


def read(file: Path, given: Mapping[str, Any]) -> Conditions:
    """The conditions of a sweep's file; `given` (None: not given) wins over it. Raises UsageError in one line.

    The run's name is the file's unless the file or `given` has one.
    """
    values = read_toml(file, "FILE") | {key: value for key, value in given.items() if value is not None}
    axes = {name: _axis(values, name) for name in AXES}
    values.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).strip("-.") or "sweep")
    conditions = tuple(
        build(values | _own(model) | {"prompt_strategy": strategy, "feedback": arm}, str(file))
        for model, strategy, arm in product(*axes.values())
    )
    _check(conditions)
    return conditions


def stored(config: Mapping[str, Any], path: Path, changes: Mapping[str, Any]) -> Conditions:
    """The conditions of a run folder, with the settings that a resume gives anew (None: not given)."""
    given = {"runs_dir": str(path.parent), "name": path.name}
    given |= {key: value for key, value in changes.items() if value is not None}
    return tuple(
        build(config["settings"] | own | given, f"{path}/config.json") for own in config.get("conditions", [{}])
    )


def to_config(conditions: Sequence[Settings]) -> dict[str, Any]:
    """What `config.json` keeps: `settings`, and where there are several conditions those in which they differ, one
    object per condition, under `conditions`."""
    rows = [settings.model_dump(mode="json") for settings in conditions]
    shared = {key: value for key, value in rows[0].items() if all(row[key] == value for row in rows)}
    if len(rows) == 1:
        return {"settings": shared}
    return {
        "settings": shared,
        "conditions": [{key: value for key, value in row.items() if key not in shared} for row in rows],
    }


def differences(old: Sequence[Settings], new: Sequence[Settings]) -> list[str]:
    """Settings that differ and would change requests or verdicts, as "key: stored X, given Y"."""
    found = []
    for key in Settings.model_fields:
        if key not in NEUTRAL:
            before, now = (_values(conditions, key) for conditions in (old, new))
            if before != now:
                found.append(f"{key}: stored {', '.join(before)}, given {', '.join(now)}")
    if not found and len(old) != len(new):
        found.append(f"conditions: stored {len(old)}, given {len(new)}")
    return found


def _values(conditions: Iterable[Settings], key: str) -> list[str]:
    return list(dict.fromkeys(repr(getattr(settings, key)) for settings in conditions))


def _axis(values: dict[str, Any], name: str) -> list[Any]:
    """The values of one axis: a list, or one value."""
    given = values.pop(name, Settings.model_fields[name].default)
    found = given if isinstance(given, list) else [given]
    if not found:
        raise UsageError(f"{option(name)}: the list is empty; give one or more, or leave it out")
    return found


def _own(model: Any) -> dict[str, Any]:
    """A model's own settings: its name, or a table."""
    if not isinstance(model, dict):
        return {"model": model}
    other = sorted(set(model) - set(MODEL_SETTINGS))
    if other or "model" not in model:
        what = f"may not set {', '.join(other)}; it may set" if other else "must name its `model`; it may also set"
        raise UsageError(f"--model: a model's table {what} {', '.join(MODEL_SETTINGS)}")
    return model


def _check(conditions: Conditions) -> None:
    seen: set[tuple[str, str, str]] = set()
    for settings in conditions:
        if settings.recorded:
            raise UsageError(
                f"--model {settings.model}: a sweep asks, and recorded answers are given already; judge them by "
                f"`agentloop run --model {settings.model}`"
            )
        key = (settings.called, settings.prompt_strategy, settings.feedback)
        if key in seen:
            what = " · ".join(key)
            raise UsageError(f"{what} is there twice; list each once, and tell equal models apart by `label`")
        seen.add(key)
