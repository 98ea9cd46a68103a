"""agentloop: ask a model for a Triton kernel, judge it, tell it what failed, and measure what naive checks miss.

The protocols below are the map of the system. Data flows one way:
task → prompt → answer → candidate → cases → verdict → feedback → record → report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from oracle.schema import Task
from oracle.verdict import NaiveResult, Verdict

__version__ = "0.1.0"


@dataclass(frozen=True)
class Request:
    """One chat request: everything that can change the answer. `sample` is sent as `seed`, combined with the run's."""

    model: str
    messages: tuple[dict[str, str], ...]
    parameters: dict[str, Any] = field(default_factory=dict)  # temperature, top_p, max_tokens, seed, extra_body
    sample: int = 0


@dataclass(frozen=True)
class Answer:
    """What an author said: the text, why it stopped ("stop", "length", "content_filter", …) and the tokens it took."""

    request_id: str
    text: str
    finish_reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Retry:
    """A try that failed and is followed by another: why, the response's status if there was one, and the wait between."""

    reason: str
    status: int | None
    waits: float  # seconds


@dataclass(frozen=True)
class Reply:
    """A usable response: the answer, the response's JSON as received, and the number of tries it took."""

    answer: Answer
    raw: dict[str, Any]
    tries: int


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt, the tiers it states (the oracle's headline fails a candidate on these alone) and the findings
    that it forbids (elsewhere they are notes)."""

    prompt_id: str
    messages: tuple[dict[str, str], ...]
    tiers_stated: tuple[str, ...]
    forbids: tuple[str, ...] = ()


class Author(Protocol):
    """Whatever answers a prompt. `on_retry` is told of each further try before the wait for it."""

    async def ask(self, request: Request, request_id: str, on_retry: Callable[[Retry], None]) -> Reply: ...


class Prompter(Protocol):
    """Words a request: the first from a prompt strategy, later ones from a feedback arm."""

    def first(self, task: Task) -> Prompt: ...

    def next(
        self,
        task: Task,
        before: Prompt,
        answer: str,
        source: str | None,
        verdict: Verdict | None,
        naive: NaiveResult | None = None,
    ) -> Prompt: ...


class Judge(Protocol):
    """Decides. `stream` keeps the cases shown as feedback apart from those that score."""

    def judge(
        self,
        task: Task,
        source: str,
        *,
        stream: str = "score",
        naive: bool = True,
        minimized: bool = True,
        exclude: frozenset[str] = frozenset(),
        forbid: frozenset[str] = frozenset(),
    ) -> Verdict: ...
