"""What tests read of a run folder, and what a request that reached a server is called in it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from agentloop import Request
from agentloop.episodes import request_key
from agentloop.files import read_lines
from agentloop.store import read_config


def attempts(path: Path) -> dict[str, dict[str, Any]]:
    """Attempts by id, without what time tells. Fails for an attempt that is there twice."""
    rows = read_lines(path / "attempts.jsonl")[0]
    for row in rows:
        del row["time"], row["timings"]
        for stream in ("score", "feedback_verdict"):
            if row[stream]:
                del row[stream]["seconds"]
    assert len({row["attempt_id"] for row in rows}) == len(rows)
    return {row["attempt_id"]: row for row in rows}


def requests(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of each request, in order."""
    lines = defaultdict(list)
    for record in read_lines(path / "requests.jsonl")[0]:
        lines[record["request_id"]].append(record)
    return lines


def stored(path: Path) -> set[str]:
    """The requests whose response is there."""
    return {file.stem for file in (path / "responses").glob("[!.]*.json")}


def key_of(endpoint: str, body: dict[str, Any]) -> str:
    """The request id of a body that reached a server, where the run's seed is 0: the seed sent is the sample index."""
    parameters = {key: value for key, value in body.items() if key not in ("model", "messages")}
    return request_key(endpoint, Request(body["model"], tuple(body["messages"]), parameters, body["seed"]))


def check_readable(path: Path) -> None:
    """After any interruption all but a torn last line can be read, and each stored response is whole."""
    if (path / "config.json").exists():
        read_config(path)
    for name in ("attempts", "requests", "faults"):
        read_lines(path / f"{name}.jsonl")
    for name in stored(path):
        json.loads((path / "responses" / f"{name}.json").read_text())
