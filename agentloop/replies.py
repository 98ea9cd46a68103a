"""Answers to requests: a stored one where there is one, else sent, stored, and only then given out."""

from __future__ import annotations

import asyncio
from typing import Any

from agentloop import Answer, Author, Reply, Request
from agentloop.client import RequestFailed
from agentloop.episodes import request_key
from agentloop.flights import Flights
from agentloop.store import Store


class Replies:
    """The only way to an author. At most `concurrency` requests are on their way, so that a kill leaves at most that
    many in doubt."""

    def __init__(self, store: Store, author: Author, endpoint: str, concurrency: int) -> None:
        self.store, self.author, self.endpoint = store, author, endpoint
        self._gate = asyncio.Semaphore(concurrency)
        self._flights: Flights[Answer] = Flights()

    async def get(self, request: Request) -> Answer:
        """Raises RequestFailed (booked, to be sent again on resume) or UsageError (the run cannot go on)."""
        request_id = request_key(self.endpoint, request)
        if self.store.has_response(request_id):
            return stored_answer(self.store.response(request_id))
        return await self._flights.join(request_id, lambda: self._send(request_id, request))

    def stop(self) -> None:
        self._flights.cancel()

    async def _send(self, request_id: str, request: Request) -> Answer:
        async with self._gate:
            self.store.sent(request_id, request.model, request.sample)
            try:
                reply = await self.author.ask(request, request_id)
            except RequestFailed as error:
                self.store.failed(request_id, str(error), error.tries, error.retries)
                raise
            self.store.save_response(request_id, self._record(request, reply), reply.tries, reply.retries)
            return reply.answer

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
