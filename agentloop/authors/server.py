"""A loopback server that speaks the OpenAI chat API for one built-in author: POST /v1/chat/completions, GET /v1/models.

One whole answer per request: no streaming, n = 1. Errors have the API's shape, so that a client treats them as a real
server's. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from agentloop import __version__
from agentloop.errors import UsageError

MAX_BODY = 32 * 1024 * 1024  # bytes of a request
IDLE_SECONDS = 120.0  # a kept-alive connection that says nothing is closed
CHARACTERS_PER_TOKEN = 4  # rough, for `usage`: these authors have no tokenizer

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Said:
    """An author's answer to one request."""

    text: str
    finish_reason: str = "stop"


class ApiError(Exception):
    """An answer of the API other than 200."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param

    def body(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Speaker(Protocol):
    """An author as the server sees it. `fingerprint` goes into every answer's `system_fingerprint`."""

    kind: str
    models: tuple[str, ...]
    fingerprint: str

    def say(self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]) -> Said:
        """Answer. `parameters` is the request's body; raises ApiError for what cannot be answered. Thread-safe."""
        ...


class AuthorServer:
    """Serves a speaker from threads of this process. Close it, or use it as part of `authors.start`."""

    def __init__(self, author: Speaker, port: int = 0) -> None:
        try:
            self._server = _Server((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"--port {port}: cannot listen on {HOST}: {error}; 0 takes a free port") from None
        self._server.author = author
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}/v1"

    @property
    def models(self) -> tuple[str, ...]:
        return self._server.author.models

    def start(self) -> None:
        """Serve from a background thread."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def serve_forever(self) -> None:
        """Serve from this thread until interrupted."""
        self._server.serve_forever()

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # a client may open all its connections at once
    daemon_threads = True
    block_on_close = False
    author: Speaker


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"agentloop/{__version__}"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/v1/models":
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "agentloop"} for name in self._models()]
            self._send(HTTPStatus.OK, {"object": "list", "data": models})
        elif path == "/health":
            self._send(HTTPStatus.OK, {"status": "ok"})
        else:
            self._refuse(ApiError(404, f"unknown path {path}; this server has /v1/chat/completions and /v1/models"))

    def do_POST(self) -> None:
        try:
            body = self._body()
            if self.path.partition("?")[0].rstrip("/") != "/v1/chat/completions":
                raise ApiError(404, f"unknown path {self.path}; POST goes to /v1/chat/completions")
            self._send(HTTPStatus.OK, self._complete(body))
        except ApiError as error:
            self._refuse(error)

    def _models(self) -> tuple[str, ...]:
        return self.server.author.models

    def _body(self) -> bytes:
        """The whole body, so that the connection can be used again."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            raise ApiError(413 if length.isdecimal() else 411, f"Content-Length must be given and at most {MAX_BODY}")
        return self.rfile.read(int(length))

    def _complete(self, body: bytes) -> dict[str, Any]:
        request = parse_request(body)
        model = request["model"]
        if model not in self._models():
            known = ", ".join(self._models())
            raise ApiError(
                404, f"the model {model!r} does not exist; this server has {known}", "model_not_found", "model"
            )
        author = self.server.author
        said = author.say(model, request["messages"], request)
        asked = sum(len(message["content"]) for message in request["messages"])
        usage = {"prompt_tokens": tokens(asked), "completion_tokens": tokens(len(said.text))}
        return {
            "id": "chatcmpl-" + hashlib.blake2b(body, digest_size=12).hexdigest(),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": said.text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": said.finish_reason,
                }
            ],
            "usage": usage | {"total_tokens": sum(usage.values())},
            "system_fingerprint": author.fingerprint,
        }

    def _refuse(self, error: ApiError) -> None:
        self._send(error.status, error.body())

    def _send(self, status: int, data: Mapping[str, Any]) -> None:
        body = json.dumps(data).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the client has gone: nobody to tell

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the loop keeps its own record of requests."""


def tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def parse_request(body: bytes) -> dict[str, Any]:
    """A chat request whose `messages` hold plain strings; raises ApiError 400 that names what is wrong."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
    if not isinstance(request, dict):
        raise ApiError(400, "the body must be a JSON object")
    if not isinstance(request.get("model"), str):
        raise ApiError(400, "model must be a string", param="model")
    if request.get("stream"):
        raise ApiError(400, "stream is not supported here", "unsupported_value", "stream")
    if request.get("n") not in (None, 1):
        raise ApiError(400, "n must be 1", "unsupported_value", "n")
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "messages must be a list that is not empty", param="messages")
    request["messages"] = [_message(message, index) for index, message in enumerate(messages)]
    return request


def _message(message: Any, index: int) -> dict[str, str]:
    """Role and text of one message; content given in parts is joined."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ApiError(400, f"messages[{index}] must have a role", param="messages")
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str):
        raise ApiError(400, f"messages[{index}].content must be a string", param="messages")
    return {"role": message["role"], "content": content}
