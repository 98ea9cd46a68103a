"""The client against a real server: what is retried, what stops a run, what is an answer."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import time
from typing import Any

import pytest

from agentloop import Reply, Request, Retry
from agentloop.client import HEADER_VARIABLES, LONGEST_WAIT, Client, RequestFailed, check_endpoint
from agentloop.config import api_key
from agentloop.errors import UsageError
from agentloop.responses import MAX_BODY, MAX_DEPTH, retry_after
from tests.helpers.servers import Behaviour, breaks_off, completion, drips, hangs, refuses, says, sends, serving


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


REQUEST = Request("m", ({"role": "user", "content": "write"},), {"temperature": 0.5, "seed": 3, "top_k": 20}, 3)
GOOD = says("fine")


def ask(url: str, answered: bool = True, told: list[Retry] | None = None, **settings: Any) -> Reply:
    """One request; `told` receives the retries."""
    retries = [] if told is None else told

    async def go() -> Reply:
        client = Client(url, **{"key": "key", "pause": 0.01, "tries": 4, "timeout": 2.0} | settings)
        client.answered = answered
        try:
            return await client.ask(REQUEST, "id", retries.append)
        finally:
            await client.close()

    return asyncio.run(go())


def test_sends_what_was_asked_and_reads_what_came() -> None:
    with serving(GOOD) as server:
        retries: list[Retry] = []
        reply = ask(server.base_url, told=retries)
    assert (reply.answer.text, reply.answer.finish_reason, reply.tries, retries) == ("fine", "stop", 1, [])
    assert (reply.answer.prompt_tokens, reply.answer.completion_tokens) == (7, 3)
    [body] = server.log
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "write"}],
        "temperature": 0.5,
        "seed": 3,
        "top_k": 20,
    }


BAD_ONCE: dict[str, tuple[Behaviour, int | None]] = {
    "429": (refuses(429, "rate_limit_exceeded"), 429),
    "429 retry-after seconds": (refuses(429, retry_after="0"), 429),
    "429 retry-after-ms": (refuses(429, retry_after_ms="5"), 429),
    "429 retry-after date": (refuses(429, retry_after=email.utils.formatdate(0, usegmt=True)), 429),
    "429 retry-after nonsense": (refuses(429, retry_after="soon"), 429),
    "408": (refuses(408), 408),
    "409": (refuses(409), 409),
    "500": (refuses(500), 500),
    "502 page": (sends(b"<html>bad gateway</html>", 502, content_type="text/html"), 502),
    "503": (refuses(503), 503),
    "529": (refuses(529, "overloaded_error"), 529),
    "broken off": (breaks_off, None),
    "page with 200": (sends(b"<!doctype html><html>hello</html>", content_type="text/html"), None),
    "truncated JSON": (sends(json.dumps(completion("x")).encode()[:-9]), None),
    "empty body": (sends(b""), None),
    "empty object": (sends(b"{}"), None),
    "null": (sends(b"null"), None),
    "list": (sends(b"[1, 2]"), None),
    "no choices": (sends(json.dumps(completion("x", choices=[])).encode()), None),
    "choices null": (sends(json.dumps(completion("x", choices=None)).encode()), None),
    "choice of wrong type": (sends(json.dumps(completion("x", choices=["text"])).encode()), None),
    "message null": (sends(json.dumps(completion("x", choices=[{"message": None}])).encode()), None),
    "content a number": (says(17), None),
    "error with 200": (sends(b'{"error": {"message": "upstream"}}'), None),
    "invalid UTF-8": (sends(b'{"choices": "\xff\xfe"}'), None),
    "too deep": (sends(b"[" * 200_000), None),
    "deeper than can be stored": (sends(json.dumps(completion("x", extra=deep(MAX_DEPTH))).encode()), None),
    "neither text nor a reason": (says(None, choices=[{"message": {"content": None}, "finish_reason": None}]), None),
    "stopped by the endpoint": (says("", choices=[{"message": {"content": "half"}, "finish_reason": "error"}]), None),
    "aborted": (says("", choices=[{"message": {"content": "half"}, "finish_reason": "abort"}]), None),
    "500 with a lone surrogate": (sends(b'{"error": {"message": "a\\ud800b\\u001b[31m"}}', 500), 500),
}


@pytest.mark.parametrize("name", BAD_ONCE)
def test_one_bad_response_is_retried_and_logged(name: str) -> None:
    bad, status = BAD_ONCE[name]
    with serving(bad, GOOD) as server:
        retries: list[Retry] = []
        reply = ask(server.base_url, told=retries)
    assert reply.answer.text == "fine"
    assert (reply.tries, len(server.log)) == (2, 2)
    [retry] = retries
    assert retry.status == status
    assert retry.reason
    assert retry.reason.isprintable()


@pytest.mark.parametrize("bad", [hangs, drips])
def test_a_response_that_does_not_end_in_time_is_retried(bad: Behaviour) -> None:
    with serving(bad, GOOD) as server:
        started = time.monotonic()
        retries: list[Retry] = []
        reply = ask(server.base_url, told=retries, timeout=0.3)
    assert reply.answer.text == "fine"
    assert time.monotonic() - started < 2
    assert "--timeout" in retries[0].reason


ANSWERS: dict[str, tuple[Behaviour, str, str]] = {
    "null content": (says(None), "", "stop"),
    "empty content": (says(""), "", "stop"),
    "cut by length": (
        says("half", choices=[{"message": {"content": "half"}, "finish_reason": "length"}]),
        "half",
        "length",
    ),
    "content filter": (
        says("", choices=[{"message": {"content": None}, "finish_reason": "content_filter"}]),
        "",
        "content_filter",
    ),
    "content filter as 400": (refuses(400, "content_filter"), "", "content_filter"),
    "no finish reason": (says("x", choices=[{"message": {"content": "x"}}]), "x", ""),
    "lone surrogate": (sends(b'{"choices": [{"message": {"content": "a\\ud800b"}}]}'), "a?b", ""),
    "wrong content type": (sends(json.dumps(completion("x")).encode(), content_type="text/plain"), "x", "stop"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_poor_answer_is_an_answer(name: str) -> None:
    behaviour, text, reason = ANSWERS[name]
    with serving(behaviour) as server:
        reply = ask(server.base_url)
    assert (reply.answer.text, reply.answer.finish_reason) == (text, reason)
    assert len(server.log) == 1
    json.dumps(reply.raw)


@pytest.mark.parametrize(
    "usage", [None, "many", {"prompt_tokens": "7"}, {"prompt_tokens": -1}, {"prompt_tokens": True}]
)
def test_usage_that_is_missing_or_nonsense_is_unknown(usage: Any) -> None:
    with serving(says("x", usage=usage)) as server:
        reply = ask(server.base_url)
    assert (reply.answer.prompt_tokens, reply.answer.completion_tokens) == (None, None)


@pytest.mark.parametrize(
    ("status", "word"), [(401, "OPENAI_API_KEY"), (402, "credit"), (403, "OPENAI_API_KEY"), (404, "--base-url")]
)
def test_a_refusal_of_what_we_are_stops_the_run_at_once(status: int, word: str) -> None:
    with serving(refuses(status, message="no\nentry")) as server, pytest.raises(UsageError) as caught:
        ask(server.base_url)
    assert word in str(caught.value)
    assert "no entry" in str(caught.value)
    assert len(server.log) == 1


def test_a_redirect_is_named_and_not_followed() -> None:
    with serving(GOOD) as other, serving(sends(b"", 307, location=other.base_url)) as server:
        told = pytest.raises(RequestFailed, match=rf"redirect to {other.base_url}: --base-url")
        with told:
            ask(server.base_url, answered=False)
    assert (len(server.log), len(other.log)) == (2, 0)


@pytest.mark.parametrize("status", [400, 401, 429])
def test_a_key_that_the_server_repeats_is_not_told(status: int) -> None:
    retries: list[Retry] = []
    with (
        serving(refuses(status, message="no key sk-secret")) as server,
        pytest.raises((UsageError, RequestFailed)) as e,
    ):
        ask(server.base_url, answered=False, key="sk-secret", tries=2, told=retries)
    assert "no key (the key)" in str(e.value)
    assert "sk-secret" not in f"{e.value} {retries}"


@pytest.mark.parametrize(("status", "word"), [(422, "--extra-body"), (405, "--base-url"), (431, "--base-url")])
def test_a_refusal_names_what_may_help(status: int, word: str) -> None:
    with serving(refuses(status)) as server, pytest.raises(UsageError, match=word):
        ask(server.base_url, answered=False)


def test_spent_quota_is_not_retried() -> None:
    with serving(refuses(429, "insufficient_quota")) as server, pytest.raises(UsageError, match="quota"):
        ask(server.base_url)
    assert len(server.log) == 1


def test_a_bad_request_stops_the_run_only_if_none_was_ever_accepted() -> None:
    with serving(refuses(400, "unknown_parameter", "no top_k here")) as server:
        with pytest.raises(UsageError, match="no top_k here"):
            ask(server.base_url, answered=False)
        for known in ({"answered": True}, {"answered": False, "accepted": True}):  # now, or before a resume
            with pytest.raises(RequestFailed, match="no top_k here") as caught:
                ask(server.base_url, **known)
            assert caught.value.alone
    assert len(server.log) == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [("context_length_exceeded", "too long"), (None, "This model's maximum context length is 4096 tokens, too long")],
    ids=["OpenAI", "vLLM"],
)
def test_a_prompt_too_long_is_that_request_alone_though_it_is_the_first(code: str | None, message: str) -> None:
    with serving(refuses(400, code, message)) as server, pytest.raises(RequestFailed, match="too long") as caught:
        ask(server.base_url, answered=False)
    assert caught.value.alone
    assert len(server.log) == 1


def test_tries_are_bounded_and_all_logged() -> None:
    retries: list[Retry] = []
    with serving(refuses(500)) as server, pytest.raises(RequestFailed) as caught:
        ask(server.base_url, told=retries, tries=3)
    assert (caught.value.tries, len(retries), len(server.log)) == (3, 2, 3)
    assert not caught.value.alone


def test_a_server_that_never_made_sense_is_given_up_soon() -> None:
    page = sends(b"<html>hi</html>", content_type="text/html")
    with serving(page) as server, pytest.raises(RequestFailed, match="--base-url"):
        ask(server.base_url, answered=False, tries=6)
    assert len(server.log) == 2


def test_nobody_listens() -> None:
    with serving(GOOD) as server:
        url = server.base_url
    with pytest.raises(RequestFailed, match=r"cannot connect.*--base-url") as caught:
        ask(url, answered=False)
    assert "\n" not in str(caught.value)


def test_https_where_http_is_spoken() -> None:
    with serving(GOOD) as server, pytest.raises(RequestFailed, match="http or https"):
        ask(server.base_url.replace("http", "https"), answered=False)


def test_a_huge_response_is_refused_without_a_retry() -> None:
    with serving(says("x" * (MAX_BODY + 1))) as server, pytest.raises(RequestFailed, match="--max-tokens"):
        ask(server.base_url, timeout=20)
    assert len(server.log) == 1


def test_retry_after_is_waited_for() -> None:
    with serving(refuses(429, retry_after_ms="300"), GOOD) as server:
        started, retries = time.monotonic(), list[Retry]()
        ask(server.base_url, told=retries, pause=0.001)
    assert time.monotonic() - started >= 0.3
    assert retries[0].waits == 0.3


def test_a_retry_after_beyond_patience_ends_the_request_at_once() -> None:
    """To come again sooner than asked would make it worse."""
    asked = str(LONGEST_WAIT + 1)
    with serving(refuses(429, retry_after=asked)) as server, pytest.raises(RequestFailed, match="601 s") as caught:
        ask(server.base_url)
    assert len(server.log) == 1
    assert not caught.value.alone


def test_our_own_pause_is_the_least_wait() -> None:
    """A date that has passed, by whichever clock is wrong, must not turn into a storm of requests."""
    retries: list[Retry] = []
    with serving(refuses(503, retry_after="0")) as server, pytest.raises(RequestFailed):
        ask(server.base_url, told=retries, tries=5, pause=0.05)
    assert max(retry.waits for retry in retries) > 0.01


@pytest.mark.parametrize("key", ["kéy", "two\nlines", "tab\there", "\u2014"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(key: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        check_endpoint("http://127.0.0.1:9/v1", key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("name", HEADER_VARIABLES)
def test_what_else_no_header_can_carry_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x: é")  # for the last of them a header, for the others a value
    with pytest.raises(UsageError, match=name):
        check_endpoint("http://127.0.0.1:9/v1", "key")


def test_a_blank_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTLOOP_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(UsageError, match="no API key"):
        api_key()


def test_white_space_around_a_key_is_no_part_of_it() -> None:
    with serving(GOOD) as server:
        ask(server.base_url, key=" key\r\n")
        assert server.authorizations == ["Bearer key"]


@pytest.mark.parametrize("url", ["http://h:99999/v1", "http://[::1/v1", "http://h\n/v1", "http://\u2014x/v1"])
def test_an_address_that_is_none_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(UsageError, match="--base-url") as caught:
        check_endpoint(url, "key")
    assert str(caught.value).isprintable()


def test_a_proxy_that_is_none_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "foo://x")
    with pytest.raises(UsageError, match="proxy"):
        check_endpoint("https://example.invalid/v1", "key")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:9")  # it needs a package that is not ours
    with contextlib.suppress(UsageError):
        check_endpoint("https://example.invalid/v1", "key")
    check_endpoint("http://127.0.0.1:9/v1", "key")


def test_retry_after_forms() -> None:
    later = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert retry_after({}) is None
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after-ms": "soon", "retry-after": "2"}) == 2
    assert retry_after({"retry-after": "nan"}) == 0
    assert 55 < (retry_after({"retry-after": later}) or 0) <= 60
    dates = {"retry-after": "Thu, 01 Jan 1970 00:01:30 GMT", "date": "Thu, 01 Jan 1970 00:01:00 GMT"}
    assert retry_after(dates) == 30  # by the server's clock, whatever ours says
    assert 55 < (retry_after({"retry-after": later, "date": "now"}) or 0) <= 60


def test_requests_per_minute() -> None:
    async def go(url: str) -> float:
        client = Client(url, "key", per_minute=600)
        started = time.monotonic()
        await asyncio.gather(*(client.ask(REQUEST, str(i), lambda retry: None) for i in range(4)))
        await client.close()
        return time.monotonic() - started

    with serving(GOOD) as server:
        assert asyncio.run(go(server.base_url)) >= 0.3
