"""The author behind an OpenAI-compatible endpoint: one request, tried a bounded number of times, its response checked.

The SDK does not validate responses and its own retries are off: what a response must hold is checked here, and
`tenacity` is the one owner of retries. A failure is attributed here, once:
- the endpoint refuses what we are (key, model, parameters): `UsageError`, the run stops;
- the endpoint or the way to it fails: retried, then `RequestFailed`, the attempt is owed;
- the model answered badly (nothing, filtered, cut off): an `Answer`, judged as any other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import tenacity

from agentloop import Answer, Reply, Request
from agentloop.errors import EpisodeFault, UsageError

MAX_BODY = 16 << 20  # bytes of one response; no answer within a sane max_tokens comes near
MAX_WAIT = 120.0  # seconds; a longer Retry-After is cut to this
COLD_TRIES = 2  # tries while the endpoint has never answered and cannot be reached or understood
RETRIED_STATUS = (408, 409, 429)  # and every 5xx
REFUSED = {
    401: "the key is not accepted: check OPENAI_API_KEY",
    403: "the key may not use this: check OPENAI_API_KEY and --model",
    404: "no such model or path: check --model, and --base-url (it usually ends in /v1)",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class RequestFailed(EpisodeFault):
    """The request failed for good: every try, or one that need not be tried again."""

    stage = "request"

    def __init__(self, message: str, tries: int, retries: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.tries, self.retries = tries, retries


class Trouble(Exception):
    """One try failed. `again`: worth another try; `cold`: nobody sensible answered; `wait`: seconds asked for."""

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        again: bool = True,
        cold: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.status, self.again, self.cold, self.wait = status, again, cold, wait


class Client:
    """Sends requests to one endpoint. `tries` bounds the tries of a request, `timeout` is seconds for one try in all,
    `pause` the first back-off in seconds (doubled each time, with jitter); `on_retry` is told reason and seconds."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float = 600.0,
        tries: int = 6,
        pause: float = 0.5,
        per_minute: float | None = None,
        on_retry: Callable[[str, float], None] = lambda reason, seconds: None,
    ) -> None:
        self.on_retry = on_retry
        self.base_url, self.timeout, self.tries = base_url, timeout, tries
        self.answered = False  # whether this endpoint has ever given a usable response
        loopback = urlsplit(base_url).hostname in LOOPBACK
        self._http = openai.DefaultAsyncHttpxClient(trust_env=not loopback)  # a proxy cannot reach our loopback
        self._openai = openai.AsyncOpenAI(
            base_url=base_url, api_key=key, max_retries=0, timeout=timeout, http_client=self._http
        )
        self._back_off = tenacity.wait_random_exponential(multiplier=pause, max=MAX_WAIT / 2)
        self._rate = _Rate(per_minute)

    async def ask(self, request: Request, request_id: str) -> Reply:
        """Send until there is a usable response. Raises UsageError or RequestFailed."""
        retries: list[dict[str, Any]] = []

        def note(state: tenacity.RetryCallState) -> None:
            trouble = _trouble(state)
            waits = round(state.next_action.sleep, 3) if state.next_action else 0.0
            retries.append({"reason": str(trouble), "status": trouble.status, "waited": waits, "time": time.time()})
            self.on_retry(str(trouble), waits)

        controller = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, Trouble) and error.again),
            stop=self._stop,
            wait=self._wait,
            before_sleep=note,
            reraise=True,
        )
        tries, started = 0, time.monotonic()
        try:
            async for attempt in controller:
                with attempt:
                    tries = attempt.retry_state.attempt_number
                    await self._rate.turn()
                    raw, status = await self._try(request)
                    text, reason, usage = read_completion(raw, status)
            self.answered = True
        except Trouble as trouble:
            raise RequestFailed(f"{self.base_url}: {trouble} ({_times(tries)})", tries, retries) from None
        answer = Answer(request_id, text, reason, *usage, seconds=round(time.monotonic() - started, 3))
        return Reply(answer, raw, tries, retries)

    async def close(self) -> None:
        await self._openai.close()

    async def _try(self, request: Request) -> tuple[Any, int]:
        """One request. Returns the body's JSON and the status, raises Trouble or UsageError."""
        try:
            async with (
                asyncio.timeout(self.timeout),
                self._openai.chat.completions.with_streaming_response.create(
                    model=request.model,
                    messages=list(request.messages),  # type: ignore[arg-type]
                    extra_body=request.parameters,
                ) as response,
            ):
                return _parse(await _body(response)), response.status_code
        except openai.APIStatusError as error:
            return self._refusal(error), error.status_code
        except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
            raise Trouble(f"no whole response within {self.timeout:g} s (--timeout)") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            raise Trouble(f"cannot connect: {cause or error}", cold=isinstance(cause, httpx2.ConnectError)) from None
        except httpx2.HTTPError as error:
            raise Trouble(f"connection broke: {error or type(error).__name__}") from None

    def _refusal(self, error: openai.APIStatusError) -> dict[str, Any]:
        """What a 4xx or 5xx means. Returns a response in place of one the provider's filter withheld."""
        status, code, message = error.status_code, error.code or "", _server_says(error)
        if "insufficient_quota" in (code, error.type):
            raise UsageError(f"{self.base_url}: the account's quota is used up: {message}") from None
        if status in RETRIED_STATUS or status >= 500:
            raise Trouble(
                f"status {status}: {message}", status=status, wait=retry_after(error.response.headers)
            ) from None
        if status in REFUSED:
            raise UsageError(f"{self.base_url} answered {status}, {REFUSED[status]}: {message}") from None
        if code == "content_filter":
            return {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}], "error": error.body}
        if self.answered:  # others of our requests were accepted: it is this one, a prompt too long, say
            raise Trouble(f"status {status}: {message}", status=status, again=False) from None
        raise UsageError(f"{self.base_url} refuses the request ({status}): {message}; see --extra-body to drop a key")

    def _stop(self, state: tenacity.RetryCallState) -> bool:
        cold = _trouble(state).cold and not self.answered
        return state.attempt_number >= (min(COLD_TRIES, self.tries) if cold else self.tries)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        asked = _trouble(state).wait
        return self._back_off(state) if asked is None else min(asked, MAX_WAIT)


class _Rate:
    """Spaces requests evenly: at most `per_minute` start in a minute."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        if self._gap:
            now = time.monotonic()
            self._next = max(self._next + self._gap, now)
            await asyncio.sleep(self._next - now)


def read_completion(raw: Any, status: int = 200) -> tuple[str, str, tuple[int | None, int | None]]:
    """(text, finish reason, (prompt tokens, completion tokens)) of a response's JSON.

    Raises Trouble where it is not a chat completion: a server that is not one, a proxy's page, a cut stream. A null or
    empty content is an answer, an empty one.
    """
    choices = raw.get("choices") if isinstance(raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    first = first if isinstance(first, dict) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        said = json.dumps(raw)[:200]
        raise Trouble(f"status {status}, but not a chat completion (no choices[0].message): {said}", cold=True)
    content = message.get("content")
    if not isinstance(content, str | None):
        raise Trouble(f"status {status}, but the message's content is a {type(content).__name__}, not text", cold=True)
    reason = first.get("finish_reason")
    usage = raw.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    text = (content or "").encode("utf-8", "replace").decode()  # a lone surrogate would not reach a file
    return text, reason if isinstance(reason, str) else "", (_count(usage, "prompt"), _count(usage, "completion"))


def retry_after(headers: Any) -> float | None:
    """Seconds that a response asks to wait: retry-after-ms, or Retry-After as seconds or as a date; None without."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        return None if value is None else max(0.0, float(value))
    except ValueError:
        pass
    try:  # a date, against the server's own clock where it tells it
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now)
    except (KeyError, ValueError, OverflowError):
        return None


async def _body(response: Any) -> bytes:
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            raise Trouble(f"the response is larger than {MAX_BODY >> 20} MiB: lower --max-tokens", again=False)
    return bytes(body)


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = " ".join(body[:120].decode("utf-8", "replace").split())
        hint = "an HTML page: does --base-url end in /v1?" if start.startswith("<") else "truncated or not JSON"
        raise Trouble(f"status 200, but {hint} ({start or 'empty'})", cold=True) from None


def _count(usage: dict[str, Any], kind: str) -> int | None:
    value = usage.get(f"{kind}_tokens")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _server_says(error: openai.APIStatusError) -> str:
    """The server's own words, on one line."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(message or error.response.text or error.message).split())[:300]


def _trouble(state: tenacity.RetryCallState) -> Trouble:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, Trouble) else Trouble(str(error))


def _times(tries: int) -> str:
    return "tried once" if tries == 1 else f"tried {tries} times"
