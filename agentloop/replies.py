"""Answers to requests: a stored one where there is one, else sent, stored, and only then given out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentloop import Answer, Author, Reply, Request, Retry
from agentloop.budget import Budget, Use
from agentloop.client import Refused, RequestFailed
from agentloop.episodes import request_key
from agentloop.flights import Flights
from agentloop.store import Store
from agentloop.tokens import most_answer_tokens, most_tokens


class Replies:
    """The only way to an author. At most `concurrency` requests are on their way, so that a kill leaves at most that
    many in doubt; each leaves only if the run's budget has room for it.

    `kind` is what records call the author ("model", "offline" or "recorded"), `label` what they call its model where
    that is not its name.
    """

    def __init__(
        self,
        store: Store,
        author: Author,
        endpoint: str,
        concurrency: int,
        *,
        kind: str = "model",
        label: str = "",
        budget: Budget | None = None,
        on_retry: Callable[[Retry], None] = lambda retry: None,
    ) -> None:
        self.store, self.author, self.endpoint, self.concurrency = store, author, endpoint, concurrency
        self.kind, self.label, self.budget, self.on_retry = kind, label, budget or Budget(), on_retry
        self._gate = asyncio.Semaphore(concurrency)
        self._flights: Flights[Answer] = Flights()
        self._ending = False  # whether the run is: an error that is not one request's own was met, or `stop` called

    async def get(self, request: Request) -> Answer:
        """Raises RequestFailed (booked, to be sent again on resume), BudgetReached (not sent) or UsageError (the run cannot
        go on)."""
        request_id = request_key(self.endpoint, request)
        if self.store.has_response(request_id):
            return stored_answer(self.store.response(request_id))
        return await self._flights.join(request_id, lambda: self._send(request_id, request))

    def stop(self) -> None:
        self._ending = True
        self._flights.cancel()

    async def _send(self, request_id: str, request: Request) -> Answer:
        model = self.label or request.model
        most = most_tokens(request.messages), most_answer_tokens(request.parameters)
        async with self._gate, self.budget.room(self.budget.use(model, *most)) as hold:
            if self._ending:  # what waited at the gate is not sent: nobody could store its answer
                raise asyncio.CancelledError
            try:
                self.store.sent(request_id, model, request.sample, most)
                reply = await self.author.ask(request, request_id, lambda retry: self._note(request_id, retry))
                self.store.save_response(request_id, self._record(request, reply), reply.tries)
            except (RequestFailed, Refused) as error:
                hold.used = Use(requests=1)
                self._ending |= isinstance(error, Refused)
                self.store.failed(request_id, str(error), error.tries)
                raise
            except BaseException:
                self._ending = True
                raise
            answer = reply.answer
            hold.used = self.budget.answered(model, most, (answer.prompt_tokens, answer.completion_tokens))
            return answer

    def _note(self, request_id: str, retry: Retry) -> None:
        self.store.retry(request_id, retry)
        self.on_retry(retry)

    def _record(self, request: Request, reply: Reply) -> dict[str, Any]:
        answer = reply.answer
        return {
            "request_id": answer.request_id,
            "endpoint": self.endpoint,
            "model": request.model,
            "messages": list(request.messages),
            "parameters": request.parameters,
            "sample": request.sample,
            "text": answer.text,
            "finish_reason": answer.finish_reason,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "seconds": answer.seconds,
            "response": reply.raw,
        }


def stored_answer(response: dict[str, Any]) -> Answer:
    return Answer(
        response["request_id"],
        response["text"],
        response["finish_reason"],
        response["prompt_tokens"],
        response["completion_tokens"],
        response["seconds"],
    )
