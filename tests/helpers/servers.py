"""A real loopback server that answers chat requests as a test says, well or badly, and keeps a log of them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.authorizations.append(self.headers.get("authorization", ""))
        behaviour = self.server.take(body)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            behaviour(self, body)

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"content-type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class ScriptedServer(ThreadingHTTPServer):
    """Answers with `script`, one behaviour per request, the last one for ever. `log` holds the requests' bodies,
    `authorizations` the keys they came with."""

    request_queue_size = 512
    daemon_threads = True
    block_on_close = False

    def __init__(self, *script: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.log, self.authorizations = list(script), list[dict[str, Any]](), list[str]()
        self._guard = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, body: dict[str, Any]) -> Behaviour:
        with self._guard:
            self.log.append(body)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def handle_error(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(*script: Behaviour) -> Iterator[ScriptedServer]:
    server = ScriptedServer(*script)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def completion(text: Any, **changes: Any) -> dict[str, Any]:
    """A chat completion's JSON."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage} | changes


def says(text: Any, **changes: Any) -> Behaviour:
    return sends(json.dumps(completion(text, **changes)).encode())


def sends(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(status, body, named)


def refuses(status: int, code: str | None = None, message: str = "because", **headers: str) -> Behaviour:
    error = {"error": {"message": message, "type": code, "code": code}}
    return sends(json.dumps(error).encode(), status, **headers)


def breaks_off(handler: Handler, _: dict[str, Any]) -> None:
    """Half a body, then the connection is gone."""
    body = json.dumps(completion("half")).encode()
    handler.send_response(200)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    handler.close_connection = True


def drips(handler: Handler, _: dict[str, Any]) -> None:
    """A byte now and then, for ever: no read ever times out."""
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def hangs(handler: Handler, _: dict[str, Any]) -> None:
    time.sleep(5)
