"""What a run has used, and the budgets that stop it: requests, tokens and money by the user's own prices.

A request leaves only if the most that it may use still fits beside what is used and what is under way, so that no budget
is overrun. The first one that does not fit ends the sending; what is under way is stored and judged.

Counted are logged requests, each with all its tries, and the tokens of answers. Tries that failed count nothing. Counted
at their bound: an answer without `usage`, and a request that a kill left in doubt (it may have been billed).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MILLION = 1_000_000


class Price(BaseModel):
    """Money per million tokens of one model, in whatever currency the user thinks in."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)


@dataclass(frozen=True)
class Use:
    """Requests, the tokens of their prompts and answers, and money; `bounded` answers are counted at their bound."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    bounded: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Use) -> Use:
        return Use(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.money + other.money,
            self.bounded + other.bounded,
        )

    def __str__(self) -> str:
        noted = f" ({self.bounded} requests counted at their bound)" if self.bounded else ""
        return f"{self.requests} requests, {self.prompt_tokens} + {self.completion_tokens} tokens{noted}"


class BudgetReached(Exception):
    """No further request is sent. Neither a fault nor a failure: a resume with a larger budget goes on."""


class Hold:
    """One request under way: `most` is set aside for it; `used` is what it is found to have used."""

    def __init__(self, most: Use) -> None:
        self.most, self.used = most, most


class Budget:
    """Limits on a run's use, sittings before this one included; None means no limit.

    `prices`: per model, as records call it. With a limit on money every model must have one.
    """

    def __init__(
        self,
        requests: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self.requests, self.tokens, self.money, self.prices = requests, tokens, money, dict(prices or {})
        self.spent = Use()
        self.reached = ""  # why sending ended
        self._holds: set[Hold] = set()
        self._queue = asyncio.Lock()  # first come, first served: a small request does not overtake a large one
        self._freed = asyncio.Event()

    def use(self, model: str, prompt: int | None, completion: int | None, bounded: int = 0) -> Use:
        """The use of one request; a number of tokens that is not known counts as 0."""
        prompt, completion = prompt or 0, completion or 0
        price = self.prices.get(model)
        money = (prompt * price.prompt + completion * price.completion) / MILLION if price else 0.0
        return Use(1, prompt, completion, money, bounded)

    def answered(self, model: str, most: tuple[int | None, int | None], said: tuple[int | None, int | None]) -> Use:
        """The use of an answered request: what `usage` said, the bound where it said nothing."""
        prompt, completion = (bound if told is None else told for bound, told in zip(most, said, strict=True))
        return self.use(model, prompt, completion, bounded=int(None in said))

    def resume(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Count what the lines of `requests.jsonl` tell of earlier sittings."""
        under_way: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for record in records:
            sent = under_way[record["request_id"]]
            if record["event"] == "sent":
                sent.append(record)
            elif record["event"] == "done" and sent:
                first = sent.pop()
                said = record.get("prompt_tokens"), record.get("completion_tokens")
                stored = record["outcome"] == "stored"
                self.spent += self.answered(first["model"], most(first), said) if stored else Use(1)
        for sent in under_way.values():
            for record in sent:
                self.spent += self.use(record["model"], *most(record), bounded=1)

    @contextlib.asynccontextmanager
    async def room(self, most: Use) -> AsyncIterator[Hold]:
        """Set aside the most that a request may use while it is under way; the caller sets `used` to what it did use.

        Waits for requests under way where these may leave room. Raises BudgetReached where there is none.
        """
        async with self._queue:
            while not self.reached:
                self.reached = self._over(self.spent + most, most)
                if not self._over(sum((hold.most for hold in self._holds), self.spent + most), most):
                    break
                if not self.reached:
                    self._freed.clear()
                    await self._freed.wait()
            if self.reached:
                raise BudgetReached(self.reached)
            hold = Hold(most)
            self._holds.add(hold)
        try:
            yield hold
        finally:
            self._holds.discard(hold)
            self.spent += hold.used
            self._freed.set()

    def _over(self, use: Use, most: Use) -> str:
        """Which limit a use is over, in words; "" where it is over none."""
        for option, limit, used, needed in (
            ("--budget-requests", self.requests, use.requests, most.requests),
            ("--budget-tokens", self.tokens, use.tokens, most.tokens),
            ("--budget-money", self.money, use.money, most.money),
        ):
            if limit is not None and used > limit:
                numbers = [f"{n:,}" if isinstance(n, int) else f"{n:.4g}" for n in (limit, used - needed, needed)]
                return "{} {}: {} used, and the next request may need {}".format(option, *numbers)
        return ""


def most(sent: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The bound that a `sent` line holds on tokens of prompt and answer; (None, None) in lines of older runs."""
    return sent.get("most_prompt_tokens"), sent.get("most_completion_tokens")
