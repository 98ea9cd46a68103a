"""The lines of a run folder: what is written, and what every report is computed from.

`requests.jsonl` has four kinds of line: `sent` (before the request leaves), `retry` (a try failed, another follows), `done`
(after its response was stored or its failure booked) and `in_doubt` (on resume: sent, and a kill left neither response nor
failure; it is sent again). `attempts.jsonl` has one line per judged answer. `faults.jsonl` has one line per infrastructure
fault that hit an attempt: that attempt is owed, a resume tries it again. `speed.jsonl` has one line per task and candidate
that was timed. All files are append-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from agentloop.errors import UsageError
from agentloop.parts import ExamplePart, FailurePart, LookedPart, NaivePart, Status, Tiers
from agentloop.responses import MOST_TOKENS
from oracle.speed import Speed

RECORD_VERSION = 1

FileId = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]  # a file of the run is named after it, never one elsewhere

Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]  # as a response's `usage` tells


class Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())


class Rescored(Record):
    """What a run of `agentloop rescore` judges anew."""

    run: str
    changes: dict[str, Any]
    command: str


class Config(Record):
    """config.json, as far as it is read again."""

    version: int
    settings: dict[str, Any]
    conditions: list[dict[str, Any]] = Field([{}], min_length=1)  # where several differ in a setting
    tasks: dict[str, str] = {}  # digests by id
    prompts: dict[str, str] = {}  # digests of templates
    rescored: Rescored | None = None


class StoredResponse(Record):
    """responses/ID.json, as far as it is read again."""

    request_id: str
    text: str
    finish_reason: str
    prompt_tokens: Tokens | None
    completion_tokens: Tokens | None
    seconds: float


class Usage(Record):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class RequestSent(Record):
    event: Literal["sent"] = "sent"
    request_id: str  # key over endpoint, model, sampling parameters, messages, sample index
    model: str  # as attempts call it
    sample: int = 0  # the sample index that the request stands for
    most_prompt_tokens: int | None = None  # bounds on what it may use
    most_completion_tokens: int | None = None
    time: float  # unix seconds


class RequestDone(Record):
    event: Literal["done"] = "done"
    request_id: str
    outcome: Literal["stored", "failed"]
    tries: int
    error: str | None = None
    prompt_tokens: Tokens | None = None  # as the response's `usage` says
    completion_tokens: Tokens | None = None
    seconds: float = 0.0
    time: float


class RequestRetried(Record):
    """A try that failed, before the wait for the next."""

    event: Literal["retry"] = "retry"
    request_id: str
    reason: str
    status: int | None = None  # of the response, if there was one
    waits: float  # seconds
    time: float


class RequestInDoubt(Record):
    event: Literal["in_doubt"] = "in_doubt"
    request_id: str
    time: float


class Fault(Record):
    """Our trouble, never the model's failure."""

    attempt_id: str  # the attempt that is owed
    stage: Literal["request", "judge"]
    message: str  # one line
    detail: str = ""  # a traceback of our own code, where there is one
    time: float


class StreamVerdict(Record):
    """One stream's judgement of an attempt, reduced from `oracle.verdict.Verdict.to_json()`."""

    status: Status
    tiers: Tiers = Field(default_factory=dict)
    failure: FailurePart | None = None  # kind, tier, loud, message
    failures: dict[str, FailurePart] = Field(default_factory=dict)  # first failure per failing tier
    counterexample: ExamplePart | None = None  # `Counterexample.to_json()`; a long token names its file instead
    minimized: bool = True  # whether the counterexample was shrunk
    excluded: list[str] = Field(default_factory=list)  # digests of inputs shown to the author, redrawn in this stream
    forbidden: list[str] = Field(default_factory=list)  # findings that the prompt forbids (host_compute)
    cases_run: int = 0
    cases_failed: dict[str, int] = Field(default_factory=dict)  # per tier
    executions: int = 0
    seconds: float = 0.0
    notes: list[str] = Field(default_factory=list)
    sanitizer: LookedPart | None = None  # `oracle.sanitizer.Looked`, where this candidate was looked at
    not_exercised: list[str] = Field(default_factory=list)


class Attempt(Record):
    """One answer, judged."""

    version: int = RECORD_VERSION
    attempt_id: str
    episode_id: str
    model: str
    author: str  # "model", "offline" or "recorded"; anything but "model" is labelled wherever figures appear
    prompt_strategy: str
    feedback: str
    task: str
    task_hash: str
    sample: NonNegativeInt
    round: NonNegativeInt
    oracle_version: str
    tolerance: str
    domain: str
    backend: str
    seed: int
    tiers_stated: list[str]
    prompt_id: str
    response_id: FileId | None  # None: the request failed for good (infrastructure), verdicts are unjudged
    candidate_id: FileId | None
    extraction: dict[str, Any] = Field(default_factory=dict)  # {"method": …, "steps": [...]}
    naive: dict[str, NaivePart] = Field(default_factory=dict)  # profile → {"status", "reason"}
    score: StreamVerdict | None = None
    feedback_verdict: StreamVerdict | None = None  # None where no feedback stream was judged (recorded, last round…)
    status: Status  # the score stream over the run's domain
    status_stated: Status  # the score stream over tiers_stated: the headline
    ends: bool | None = None  # whether its episode ended with it; None in attempts of older versions
    infrastructure_error: str | None = None
    rescored_from: str | None = None  # the run whose answer this judges anew; what its author was told is that run's
    usage: Usage = Field(default_factory=Usage)
    timings: dict[str, float] = Field(default_factory=dict)  # seconds: request, naive, score, feedback
    time: float


class SpeedRecord(Record):
    """A candidate's time on the GPU, and whose it is."""

    task: str
    task_hash: str
    candidate_id: str
    speed: Speed
    time: float


def attempts_of(path: Path, lines: Iterable[Mapping[str, Any]]) -> dict[str, Attempt]:
    """Attempts by id, in the order recorded. UsageError names the first line that is none, or that is there twice."""
    attempts: dict[str, Attempt] = {}
    for number, line in enumerate(lines, 1):
        try:
            attempt = Attempt(**line)
        except ValidationError as error:
            first = error.errors()[0]
            message = f"is not an attempt of this version ({'.'.join(map(str, first['loc']))}: {first['msg']})"
        except TypeError:
            message = "is not an attempt of this version"
        else:
            message = "repeats an attempt" if attempt.attempt_id in attempts else ""
            attempts[attempt.attempt_id] = attempt
        if message:
            raise UsageError(f"{path} line {number} {message}; nothing was changed: repair or remove that line")
    return attempts
