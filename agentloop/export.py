"""A run's attempts for other programs: JSON lines as recorded, or a table with a column for every figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentloop.files import stored_object, stored_text
from agentloop.speeds import load_speeds

DEPTH = 3  # names in a column's path: score.tiers.shapes; what lies deeper is JSON in one cell


def with_speed(run: Path, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each record with its candidate's time as `speed` (None without one); as they are where nothing was timed."""
    speeds = {key: speed.to_json() for key, speed in load_speeds(run).items()}
    if not speeds:
        return records
    return [{**record, "speed": speeds.get((record["task"], record.get("candidate_id") or ""))} for record in records]


def with_texts(run: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with what was said: `messages` as sent, `answer`, the candidate's `source`; None where gone or damaged."""
    candidate = record.get("candidate_id")
    messages, answer = conversation(run, record.get("response_id"))
    source = stored_text(run / "candidates" / f"{candidate}.py") if candidate else None
    return {**record, "messages": messages, "answer": answer, "source": source}


def conversation(run: Path, response: str | None) -> tuple[list[dict[str, Any]] | None, str | None]:
    """The messages of a stored response, as sent, and its answer; None where gone or damaged."""
    said = (stored_object(run / "responses" / f"{response}.json") if response else None) or {}
    messages, text = said.get("messages"), said.get("text")
    whole = isinstance(messages, list) and all(isinstance(message, dict) for message in messages)
    return (messages if whole else None), (text if isinstance(text, str) else None)


def finite(value: Any) -> Any:
    """The value with non-finite numbers as text ("inf", "-inf", "nan"): JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def json_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line a record, every field kept."""
    for record in records:
        yield json.dumps(finite(record), allow_nan=False)


def table(records: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows. A column is the path to a value, joined by dots; an empty cell has none."""
    rows = [dict(_cells(finite(record))) for record in records]
    seen = dict.fromkeys(path for row in rows for path in row)
    inner = {path.rsplit(".", n)[0] for path in seen for n in range(1, path.count(".") + 1)}
    held = {path for row in rows for path, cell in row.items() if cell}
    # where one record has None and another an object, the object's own columns are enough
    columns = [path for path in seen if path in held or path not in inner]
    order = {name: place for place, name in enumerate(dict.fromkeys(path.split(".")[0] for path in seen))}
    columns.sort(key=lambda path: order[path.split(".")[0]])
    return columns, [[row.get(column, "") for column in columns] for row in rows]


def _cells(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value and len(path) < DEPTH:
        for key, item in value.items():
            yield from _cells(item, (*path, str(key)))
    elif path and value != {}:
        yield ".".join(path), value if isinstance(value, str) else "" if value is None else json.dumps(value)
