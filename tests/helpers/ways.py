"""The ways a server misbehaves, each with what the loop owes to it."""

from __future__ import annotations

import email.utils
import json
import struct
import time
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal

from agentloop.client import LONGEST_WAIT
from agentloop.responses import MAX_BODY
from tests.helpers.servers import Behaviour, Handler, breaks_off, completion, drips, hangs, refuses, says, sends

Outcome = Literal["retried", "owed", "refused", "answered"]


@dataclass(frozen=True)
class Way:
    """`outcome`: retried (and owed if it lasts), owed at once, refused (the run stops), or an answer of the model's.
    `reason` is in the logged line, `status` is its status, `waits` the least seconds before the next try; `finish` and
    `text` are what is stored of an answer."""

    behaviour: Behaviour
    outcome: Outcome
    reason: str = ""
    status: int | None = None
    waits: float = 0.0
    text: str = ""
    finish: str = "stop"
    tokens: int | None = 3  # of the answer


def choice(content: Any, finish: Any) -> Behaviour:
    return says("", choices=[{"index": 0, "message": {"content": content}, "finish_reason": finish}])


def dated(seconds: float, status: int) -> Behaviour:
    """Retry-After as a date, `seconds` from the moment of the answer."""

    def behaviour(handler: Handler, body: dict[str, Any]) -> None:
        refuses(status, retry_after=email.utils.formatdate(time.time() + seconds, usegmt=True))(handler, body)

    return behaviour


def resets(handler: Handler, _: dict[str, Any]) -> None:
    """No response at all, the connection is reset."""
    handler.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def drops_a_chunk(handler: Handler, _: dict[str, Any]) -> None:
    """Chunked, and gone before the last chunk."""
    handler.send_response(200)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"40\r\n" + json.dumps(completion("half")).encode()[:30])
    handler.close_connection = True


def bare(data: bytes) -> Behaviour:
    """These bytes, and the connection is closed."""

    def behaviour(handler: Handler, _: dict[str, Any]) -> None:
        handler.wfile.write(data)
        handler.close_connection = True

    return behaviour


def again(behaviour: Behaviour, reason: str, status: int | None = None, waits: float = 0.0) -> Way:
    return Way(behaviour, "retried", reason, status, waits)


GOOD = json.dumps(completion("x")).encode()
CODE = "```python\nGRADE = 1\n```"
WAYS: dict[str, Way] = {
    "429": again(refuses(429, "rate_limit_exceeded"), "status 429", 429),
    "429, Retry-After in seconds": again(refuses(429, retry_after="1"), "status 429", 429, 1.0),
    "429, Retry-After as a date": again(dated(2, 429), "status 429", 429, 1.0),
    "429, retry-after-ms": again(refuses(429, retry_after_ms="900"), "status 429", 429, 0.9),
    "503, Retry-After in seconds": again(refuses(503, retry_after="1"), "status 503", 503, 1.0),
    "500": again(refuses(500), "status 500", 500),
    "502 with a page": again(sends(b"<html>bad\ngateway</html>", 502, content_type="text/html"), "bad gateway", 502),
    "503": again(refuses(503), "status 503", 503),
    "529": again(refuses(529, "overloaded_error"), "status 529", 529),
    "408": again(refuses(408), "status 408", 408),
    "409": again(refuses(409), "status 409", 409),
    "500 with 20 MB": again(sends(b"x" * (20 << 20), 500), "status 500", 500),
    "time-out": again(hangs, "--timeout"),
    "slow drip": again(drips, "--timeout"),
    "drop mid-body": again(breaks_off, "connection broke"),
    "drop mid-chunk": again(drops_a_chunk, "connection broke"),
    "reset": again(resets, "cannot connect"),
    "no HTTP": again(bare(b"\x16\x03\x01\x02 hello\r\n\r\n"), "cannot connect"),
    "HTML with 200": again(sends(b"<!doctype html><html>hi</html>", content_type="text/html"), "HTML page"),
    "truncated JSON": again(sends(GOOD[:-9]), "truncated"),
    "empty body": again(sends(b""), "empty"),
    "{}": again(sends(b"{}"), "not a chat completion"),
    "an error with 200": again(sends(b'{"error": {"message": "upstream"}}'), "upstream"),
    "invalid UTF-8": again(sends(GOOD.replace(b'"x"', b'"\xff\xfe"')), "truncated or not JSON"),
    "broken gzip": again(sends(b"\x1f\x8b garbage", content_encoding="gzip"), "connection broke"),
    "nested too deep": again(sends(b'{"a":' * 500 + b"1" + b"}" * 500), "levels"),
    "neither text nor a reason": again(choice(None, None), "neither text"),
    "an error and no text": again(says("", error={"message": "overloaded"}), "overloaded"),
    "a stream": again(sends(b'data: {"choices": []}\n\ndata: [DONE]\n\n'), "a stream of events"),
    "choices as a dict": again(says("", choices={"0": {"message": {"content": CODE}}}), "not a chat completion"),
    "parts that are none": again(choice([{"type": "image"}], "stop"), "a list, not text"),
    "redirect": again(sends(b"", 307, location="https://portal.invalid/login"), "portal.invalid"),
    "HTTP/0.9": again(bare(b"hello"), "cannot connect"),
    "a header without end": again(bare(b"HTTP/1.1 200 OK\r\nx: " + b"a" * (1 << 20)), "cannot connect"),
    "stopped by the endpoint": again(choice(CODE, "error"), "finish_reason error"),
    "20 MB answer": Way(says("x" * (MAX_BODY + 1)), "owed", "larger than"),
    "prompt too long": Way(refuses(400, "context_length_exceeded", "too long"), "owed", "too long"),
    "422": Way(refuses(422, message="no top_k here"), "owed", "no top_k here"),
    "413": Way(refuses(413, message="too large"), "owed", "too large"),
    "429, Retry-After beyond patience": Way(refuses(429, retry_after=str(LONGEST_WAIT + 1)), "owed", "601 s"),
    "insufficient_quota": Way(refuses(429, "insufficient_quota"), "refused", "quota"),
    "401": Way(refuses(401), "refused", "OPENAI_API_KEY"),
    "402": Way(refuses(402), "refused", "credit"),
    "403": Way(refuses(403), "refused", "OPENAI_API_KEY"),
    "404": Way(refuses(404, "model_not_found"), "refused", "--model"),
    "null content": Way(says(None), "answered"),
    "empty content": Way(says(""), "answered"),
    "content filter": Way(choice(None, "content_filter"), "answered", finish="content_filter"),
    "content filter as 400": Way(refuses(400, "content_filter"), "answered", finish="content_filter", tokens=None),
    "cut by length": Way(
        choice("```python\nGRADE = 1", "length"), "answered", text="```python\nGRADE = 1", finish="length"
    ),
    "wrong content type": Way(sends(GOOD, content_type="text/plain"), "answered", text="x"),
    "usage missing": Way(says("x", usage=None), "answered", text="x", tokens=None),
    "usage nonsense": Way(says("x", usage={"completion_tokens": "many"}), "answered", text="x", tokens=None),
    "usage beyond counting": Way(says("x", usage={"completion_tokens": 10**400}), "answered", text="x", tokens=None),
    "content in parts": Way(
        choice([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": CODE}], "stop"), "answered", text=CODE
    ),
    "a lone surrogate": Way(sends(GOOD.replace(b'"x"', b'"\\ud800"')), "answered", text="?"),
    "a duplicate id": Way(says("x", id="the same"), "answered", text="x"),
    "another duplicate id": Way(says("x", id="the same"), "answered", text="x"),
}


def of(*outcomes: Outcome) -> dict[str, Way]:
    return {name: way for name, way in WAYS.items() if way.outcome in outcomes}
