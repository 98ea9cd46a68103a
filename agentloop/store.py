"""A run folder, opened by one process: what was asked, answered and judged, and what may be in doubt.

config.json         settings, versions, hardware, backend, isolation, commit; written once
requests.jsonl      `sent` before a request leaves, `retry` before each further try, `done` after its response is stored or
                    it failed for good, `in_doubt` on resume for each request that was sent and neither stored nor failed
responses/ID.json   one stored response, written whole before it is judged
attempts.jsonl      one line per judged answer
faults.jsonl        infrastructure faults: the attempts they hit are owed, not failed
candidates/ID.py    each distinct candidate source
counterexamples/    counterexamples whose token is too long for a line
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from agentloop import Retry
from agentloop.errors import UsageError
from agentloop.files import Log, read_regular, storing, sync_folder, take_lock, write_json, write_whole
from agentloop.records import (
    Attempt,
    Config,
    Fault,
    RequestDone,
    RequestInDoubt,
    RequestRetried,
    RequestSent,
    StoredResponse,
    attempts_of,
)
from oracle.case import TOKEN_LIMIT
from oracle.verdict import candidate_id

CONFIG_VERSION = 1
FOLDERS = ("responses", "candidates", "counterexamples")
EVENTS: dict[str, type[BaseModel]] = {
    "sent": RequestSent,
    "retry": RequestRetried,
    "done": RequestDone,
    "in_doubt": RequestInDoubt,
}


def find_run(run: str | Path, runs_dir: str | Path = "runs") -> Path:
    """The folder of RUN: a path to a run folder, or a name under `runs_dir`. UsageError where there is none."""
    candidates = [Path(run), Path(runs_dir) / run]
    for path in candidates:
        if (path / "config.json").is_file():
            return path
    for path in candidates:
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} is not a run folder: it has no config.json")
    names = sorted(path.parent.name for path in Path(runs_dir).glob("*/config.json"))
    have = f"it has {', '.join(names[-8:])}" if names else "it has no run yet: start one with `agentloop run`"
    raise UsageError(f"no run {str(run)!r} under --runs-dir {runs_dir}; {have}")


def read_config(path: Path) -> dict[str, Any]:
    """A run's config.json. UsageError where it is absent, damaged or of another version."""
    try:
        config = json.loads(read_regular(path / "config.json"))
        if config["version"] == CONFIG_VERSION:
            Config(**config)
    except FileNotFoundError:
        raise UsageError(f"{path} is not a run folder: it has no config.json") from None
    except OSError as error:
        raise UsageError(f"{path}/config.json: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{path}/config.json is damaged or not of a run; nothing was changed") from None
    if config["version"] != CONFIG_VERSION:
        raise UsageError(f"{path} is of run format {config['version']}; this agentloop reads format {CONFIG_VERSION}")
    return config


class Store:
    """One open run folder. Every method that writes returns only when the data is on disk.

    `attempts` maps attempt_id to what is recorded; `requests` holds the lines of requests.jsonl as they were at this
    opening; `in_doubt` lists the requests that a kill left in doubt before it and that were not sent again. Raises
    UsageError for a foreign, damaged or locked folder (nothing changed), StorageError where it cannot write.
    """

    def __init__(self, path: Path, config: dict[str, Any], lock: int) -> None:
        """`lock` is the folder's, taken by `create` or `open`."""
        self.path, self.config, self._lock = path, config, lock
        self._logs: list[Log] = []
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self._logs = [Log(path / f"{name}.jsonl") for name in ("attempts", "requests", "faults")]
            self._attempts, self._requests, self._faults = self._logs
            self.attempts = attempts_of(self._attempts.path, self._attempts.records)
            _check_requests(self._requests)
            self.requests = self._requests.records
            self._prepare()
            self._stored = {file.stem for file in (path / "responses").glob("*.json")}
            self._candidates = {file.stem for file in (path / "candidates").glob("*.py")}
            self.in_doubt = self._book_doubts()
            stack.pop_all()

    @classmethod
    def create(cls, path: Path, config: dict[str, Any]) -> Store:
        """A new run folder; the folder must be absent or hold nothing but what a killed `create` leaves."""
        with storing(path):
            path.mkdir(parents=True, exist_ok=True)
            _refuse_filled(path)
        lock = take_lock(path)
        try:
            _refuse_filled(path)  # another process may have made it its own since
            write_json(path / "config.json", config)
        except BaseException:
            os.close(lock)
            raise
        return cls(path, config, lock)

    @classmethod
    def open(cls, path: Path) -> Store:
        return cls(path, read_config(path), take_lock(path))

    def has_response(self, request_id: str) -> bool:
        return request_id in self._stored

    @property
    def answered(self) -> bool:
        """Whether a response is stored."""
        return bool(self._stored)

    def has_answers_of(self, models: Collection[str]) -> bool:
        """Whether a request of one of these models was answered before the folder was opened."""
        sent = (record for record in self.requests if record["event"] == "sent" and record["model"] in models)
        return any(record["request_id"] in self._stored for record in sent)

    def response(self, request_id: str) -> dict[str, Any]:
        """A stored response, as given to `save_response`."""
        path = self.path / "responses" / f"{request_id}.json"
        try:
            response = json.loads(read_regular(path))
            if StoredResponse(**response).request_id == request_id:
                return response
        except (OSError, ValueError, TypeError, RecursionError):
            pass
        raise UsageError(f"{path} is damaged; remove that file to have the request sent again")

    def sent(
        self, request_id: str, model: str, sample: int, most: tuple[int | None, int | None] = (None, None)
    ) -> None:
        """Log a request before it leaves; `most` bounds the tokens of its prompt and of its answer."""
        prompt, completion = most
        record = RequestSent(
            request_id=request_id,
            model=model,
            sample=sample,
            most_prompt_tokens=prompt,
            most_completion_tokens=completion,
            time=time.time(),
        )
        self._requests.append(_line(record))

    def retry(self, request_id: str, retry: Retry) -> None:
        """Log that a try failed, before the wait for the next."""
        self._requests.append(_line(RequestRetried(request_id=request_id, **asdict(retry), time=time.time())))

    def save_response(self, request_id: str, response: dict[str, Any], tries: int) -> None:
        """Store a response whole, then book it."""
        write_json(self.path / "responses" / f"{request_id}.json", response)
        self._stored.add(request_id)
        self._done(request_id, outcome="stored", tries=tries, **_figures(response))

    def failed(self, request_id: str, error: str, tries: int) -> None:
        """Book a request that failed for good; a resume sends it again."""
        self._done(request_id, outcome="failed", tries=tries, error=error)

    def fault(self, attempt_id: str, stage: Literal["request", "judge"], message: str, detail: str = "") -> None:
        """Book an infrastructure fault; the attempt stays owed."""
        record = Fault(attempt_id=attempt_id, stage=stage, message=message, detail=detail, time=time.time())
        self._faults.append(_line(record))

    def add(self, attempt: Attempt) -> Attempt:
        """Record an attempt, each attempt_id once; returned as a later opening will read it."""
        if attempt.attempt_id in self.attempts:
            raise ValueError(f"attempt {attempt.attempt_id} is already recorded")
        line = _line(attempt)
        self._attempts.append(line)
        return self.attempts.setdefault(attempt.attempt_id, Attempt(**line))

    def save_candidate(self, source: str) -> str:
        """Store a source once, under its digest, which is returned."""
        name = candidate_id(source)
        if name not in self._candidates:
            write_whole(self.path / "candidates" / f"{name}.py", source.encode("utf-8", "replace"))
            self._candidates.add(name)
        return name

    def shorten(self, counterexample: dict[str, Any]) -> dict[str, Any]:
        """A counterexample whose token fits on a line: a longer one is stored and its file named instead."""
        token = counterexample["token"]
        if len(token) <= TOKEN_LIMIT:
            return counterexample
        name = f"counterexamples/{hashlib.blake2b(token.encode(), digest_size=8).hexdigest()}.json"
        write_json(self.path / name, counterexample)
        return counterexample | {"token": name}

    def close(self) -> None:
        """Release the folder; safe to call twice."""
        for log in self._logs:
            log.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """The first change to the folder, after all of it was read and found whole."""
        for log in self._logs:
            log.open()
        with storing(self.path):
            for name in FOLDERS:
                folder = self.path / name
                folder.mkdir(exist_ok=True)
                for partial in folder.glob(".*.partial"):  # of a process that was killed at it
                    partial.unlink()
            sync_folder(self.path)

    def _done(self, request_id: str, **fields: Any) -> dict[str, Any]:
        line = _line(RequestDone(request_id=request_id, time=time.time(), **fields))
        self._requests.append(line)
        return line

    def _book_doubts(self) -> list[str]:
        """Requests that were sent and neither stored nor booked as failed: log each once, so that the count outlives
        this process. A response stored just before a kill gets its missing `done` line."""
        last: dict[str, str] = {}  # the event that tells how a request stands
        tries: Counter[str] = Counter()  # since it was last sent
        for record in self._requests.records:
            request_id, event = record["request_id"], record["event"]
            tries[request_id] = 1 if event == "sent" else tries[request_id] + (event == "retry")
            if event != "retry":
                last[request_id] = event
        for request_id in [request_id for request_id, event in last.items() if event == "sent"]:
            if request_id in self._stored:
                last[request_id], figures = "done", _figures(self.response(request_id))
                done = self._done(request_id, outcome="stored", tries=tries[request_id], **figures)
                self.requests.append(done)
            else:
                last[request_id] = "in_doubt"
                self._requests.append(_line(RequestInDoubt(request_id=request_id, time=time.time())))
        return [request_id for request_id, event in last.items() if event == "in_doubt"]


def _figures(response: dict[str, Any]) -> dict[str, Any]:
    """What a `done` line repeats of its response."""
    keys = ("prompt_tokens", "completion_tokens", "seconds")
    return {key: response[key] for key in keys if response.get(key) is not None}


def _line(record: BaseModel) -> dict[str, Any]:
    return record.model_dump(mode="json")


def _refuse_filled(path: Path) -> None:
    if any(file.name not in (".lock", ".config.json.partial") for file in path.iterdir()):
        raise UsageError(f"{path} exists and is not an empty folder; choose another --name")


def _check_requests(log: Log) -> None:
    for number, record in enumerate(log.records, 1):
        try:
            EVENTS[record["event"]](**record)
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{log.path} line {number} is not a request's; nothing was changed: repair or remove it"
            ) from None
