"""The author behind an OpenAI-compatible endpoint: one request, tried a bounded number of times, its response checked.

The SDK does not validate responses and its own retries are off: `responses` says what a response must hold, and
`tenacity` is the one owner of retries. A failure is attributed here, once:
- the endpoint refuses what we are (key, account, model, parameters): `Refused`, a `UsageError`, the run stops;
- the endpoint or the way to it fails: retried, then `RequestFailed`, the attempt is owed;
- the model answered badly (nothing, filtered, cut off): an `Answer`, judged as any other.

All waiting is by the monotonic clock; the wall clock is only written down.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import tenacity

from agentloop import Answer, Reply, Request, Retry
from agentloop.errors import EpisodeFault, UsageError
from agentloop.responses import MAX_BODY, Trouble, one_line, parse, read_completion, retry_after

LONGEST_WAIT = 600.0  # seconds; a Retry-After up to this is honoured in full, a longer one ends the request's tries
LONGEST_PAUSE = 60.0  # seconds; the back-off of our own grows no further
COLD_TRIES = 2  # tries while the endpoint has never answered and cannot be reached or understood
RETRIED_STATUS = (408, 409, 429)  # and every 5xx
REFUSED = {
    401: "the key is not accepted: check OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this: check OPENAI_API_KEY and --model",
    404: "no such model or path: check --model, and --base-url (it usually ends in /v1)",
}
PARAMETERS = (400, 422)  # what is wrong is what the request holds
TOO_LARGE = 413
LEAST_SECRET = 8  # letters of a key that is worth hiding; "none" is not
HEADER_VARIABLES = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS")  # the SDK sends what they hold
TOO_LONG = re.compile(r"context[ _](length|size|window)")  # in OpenAI's code, llama.cpp's type, the words of vLLM
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class RequestFailed(EpisodeFault):
    """The request failed for good: every try, or one that need not be tried again. `alone`: the endpoint is well and
    will have no such request (a prompt too long, say); other requests may succeed."""

    stage = "request"

    def __init__(self, message: str, tries: int, alone: bool = False) -> None:
        super().__init__(message)
        self.tries, self.alone = tries, alone


class Refused(UsageError):
    """The endpoint will have no request of ours until something is changed here."""

    tries = 1


class Client:
    """Sends requests to one endpoint. `tries` bounds the tries of a request, `timeout` is seconds for one try in all,
    `pause` the first back-off in seconds (doubled each time, with jitter). `accepted`: the endpoint answered such requests
    before, so one that it refuses is refused for what it holds. Raises UsageError where the endpoint's address or the key
    cannot be used at all."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float = 600.0,
        tries: int = 6,
        pause: float = 0.5,
        per_minute: float | None = None,
        accepted: bool = False,
    ) -> None:
        self.base_url, self.timeout, self.tries = base_url, timeout, tries
        self.answered = False  # whether this endpoint has given this client a usable response
        self._accepted = accepted
        self._openai, self._key = _sdk(base_url, key, timeout), key.strip()
        self._back_off = tenacity.wait_random_exponential(multiplier=pause, max=LONGEST_PAUSE)
        self._rate = _Rate(per_minute)

    async def ask(self, request: Request, request_id: str, on_retry: Callable[[Retry], None]) -> Reply:
        """Send until there is a usable response. Raises Refused or RequestFailed."""

        def note(state: tenacity.RetryCallState) -> None:
            trouble, waits = _trouble(state), state.next_action.sleep if state.next_action else 0.0
            on_retry(Retry(self._without_key(trouble), trouble.status, round(waits, 3)))

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
        except Refused as refusal:
            told = Refused(self._without_key(refusal))
            told.tries = tries
            raise told from None
        except Trouble as trouble:
            reason = self._without_key(trouble)
            raise RequestFailed(f"{self.base_url}: {reason} ({_times(tries)})", tries, trouble.alone) from None
        answer = Answer(request_id, text, reason, *usage, seconds=round(time.monotonic() - started, 3))
        return Reply(answer, raw, tries)

    async def close(self) -> None:
        await self._openai.close()

    def _without_key(self, error: Exception) -> str:
        """What an error says: it is recorded and shown, and some servers repeat the key that they do not accept."""
        return str(error).replace(self._key, "(the key)") if len(self._key) >= LEAST_SECRET else str(error)

    async def _try(self, request: Request) -> tuple[Any, int]:
        """One request. Returns the body's JSON and the status, raises Trouble or Refused."""
        try:
            async with (
                asyncio.timeout(self.timeout),
                self._openai.chat.completions.with_streaming_response.create(
                    model=request.model,
                    messages=list(request.messages),  # type: ignore[arg-type]
                    extra_body=request.parameters,
                ) as response,
            ):
                return parse(await _body(response)), response.status_code
        except openai.APIStatusError as error:
            return self._refusal(error), error.status_code
        except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
            raise Trouble(f"no whole response within {self.timeout:g} s (--timeout)") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            why = one_line(str(cause or error)) or type(cause or error).__name__
            hint = "" if self.answered or self._accepted else "; check --base-url (host, port, http or https)"
            raise Trouble(f"cannot connect: {why}{hint}", cold=isinstance(cause, httpx2.ConnectError)) from None
        except httpx2.HTTPError as error:
            raise Trouble(f"connection broke: {one_line(str(error)) or type(error).__name__}") from None

    def _refusal(self, error: openai.APIStatusError) -> dict[str, Any]:
        """What a 4xx or 5xx means. Returns a response in place of one the provider's filter withheld."""
        status, code, message = error.status_code, error.code or "", _server_says(error)
        if "insufficient_quota" in (code, error.type):
            raise Refused(f"{self.base_url}: the account's quota is used up: {message}") from None
        if status in RETRIED_STATUS or status >= 500:
            raise self._later(f"status {status}: {message}", status, retry_after(error.response.headers)) from None
        if status in REFUSED:
            raise Refused(f"{self.base_url} answered {status}, {REFUSED[status]}: {message}") from None
        if 300 <= status < 400:
            place = one_line(error.response.headers.get("location", ""))[:300] or "nowhere"
            raise Trouble(f"status {status}, a redirect to {place}: --base-url must be the address itself", cold=True)
        if code == "content_filter":
            return {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}], "error": error.body}
        too_long = status == TOO_LARGE or TOO_LONG.search(f"{code} {error.type} {message}")
        if too_long or self.answered or self._accepted:  # it is this request alone: others were accepted
            raise Trouble(f"status {status}: {message}", status=status, again=False, alone=True) from None
        then = "see --extra-body to drop a key" if status in PARAMETERS else "check --base-url"
        raise Refused(f"{self.base_url} refuses the request ({status}): {message}; {then}")

    def _later(self, reason: str, status: int, wait: float | None) -> Trouble:
        """Worth another try, unless the endpoint asks for more patience than a run has."""
        if wait is None or wait <= LONGEST_WAIT:
            return Trouble(reason, status=status, wait=wait)
        asked = f"it asks for {wait:.0f} s of waiting, more than {LONGEST_WAIT:.0f} s: resume the run later"
        return Trouble(f"{reason}; {asked}", status=status, again=False)

    def _stop(self, state: tenacity.RetryCallState) -> bool:
        cold = _trouble(state).cold and not self.answered
        return state.attempt_number >= (min(COLD_TRIES, self.tries) if cold else self.tries)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """What the endpoint asks for, and never less than our own back-off."""
        return max(_trouble(state).wait or 0.0, self._back_off(state))


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


def check_endpoint(base_url: str, key: str) -> None:
    """Raises UsageError where a client could not even be made."""
    _sdk(base_url, key, 1.0)


def _sdk(base_url: str, key: str, timeout: float) -> openai.AsyncOpenAI:
    key = key.strip()  # a header that cannot be sent would be quoted, key and all, in the error
    if not _sendable(key):
        raise UsageError("the API key (OPENAI_API_KEY) must be one line of ASCII characters; this one cannot be sent")
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # a ValueError where it is none
        # A proxy cannot reach our loopback. A redirected POST is often a GET, and records name one endpoint alone.
        http = openai.DefaultAsyncHttpxClient(trust_env=parts.hostname not in LOOPBACK, follow_redirects=False)
        client = openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=timeout, http_client=http)
    except (ValueError, httpx2.InvalidURL, ImportError) as error:  # ImportError: what a proxy of this kind needs
        raise UsageError(one_line(f"--base-url {base_url} cannot be used: {error}")) from None
    sent = (part for name, value in client.default_headers.items() for part in (name, value))
    if not all(_sendable(part) for part in sent if isinstance(part, str)):
        raise UsageError(f"{', '.join(HEADER_VARIABLES)}: unset what is no line of ASCII characters; it cannot be sent")
    return client


def _sendable(text: str) -> bool:
    """Whether a header can carry it."""
    return text.isascii() and text.isprintable()


async def _body(response: Any) -> bytes:
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            size = f"the response is larger than {MAX_BODY >> 20} MiB"
            raise Trouble(f"{size}: lower --max-tokens", again=False, alone=True)
    return bytes(body)


def _server_says(error: openai.APIStatusError) -> str:
    """The server's own words, on one line."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return one_line(str(message or error.response.text or error.message)[:2000])[:300]


def _trouble(state: tenacity.RetryCallState) -> Trouble:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, Trouble) else Trouble(str(error))


def _times(tries: int) -> str:
    return "tried once" if tries == 1 else f"tried {tries} times"
