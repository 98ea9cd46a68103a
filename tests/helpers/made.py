"""Run folders made through the real store: attempts, candidates and answers as a test wants them, nothing judged."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentloop.config import Settings
from agentloop.records import Attempt
from agentloop.store import CONFIG_VERSION, Store

KERNELS = Path(__file__).parents[2] / "oracle" / "corpus" / "kernels" / "seed"


def make_run(path: Path, attempts: Iterable[tuple[Attempt, str | None]], **config: Any) -> Path:
    """A folder of attempts, each with its candidate's source (None: the answer held no code)."""
    given = {"version": CONFIG_VERSION, "settings": Settings(name=path.name).model_dump(mode="json")} | config
    with Store.create(path, given) as store:
        for place, (attempt, source) in enumerate(attempts):
            response = f"{place:032x}"
            said = {"request_id": response, "messages": [{"role": "user", "content": f"please, {attempt.task}"}]}
            said |= {"text": source or "I would rather not.", "finish_reason": "stop", "seconds": 1.0}
            store.save_response(response, said | {"prompt_tokens": 60, "completion_tokens": 40}, 1)
            name = store.save_candidate(source) if source is not None else None
            store.add(attempt.model_copy(update={"response_id": response, "candidate_id": name}))
    return path


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a folder but its lock."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }
