"""What one response of an endpoint is worth: a chat completion, or trouble that is not the model's.

No SDK checks this: a proxy's page, a cut stream or an overloaded server's excuse all come with status 200.
"""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

MAX_BODY = 16 << 20  # bytes of one response; no answer within a sane max_tokens comes near
MOST_TOKENS = 10**12  # of one request; a number beyond it is no count
MAX_DEPTH = 64  # levels of a response's JSON; Python's own limit depends on where it is read or written
# Reasons to stop that are the endpoint's and not the model's: OpenRouter; vLLM and SGLang; DeepSeek; GLM.
NOT_THE_MODEL = ("error", "abort", "insufficient_system_resource", "network_error")


NOT_JSON = {
    "<": "an HTML page: does --base-url end in /v1?",
    "data:": "a stream of events, though none was asked for: does --base-url name a chat API?",
}


class Trouble(Exception):
    """One try failed. `again`: worth another try; `alone`: it says nothing of other requests; `cold`: nobody sensible
    answered; `wait`: seconds asked for."""

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        again: bool = True,
        alone: bool = False,
        cold: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.status, self.again, self.alone, self.cold, self.wait = status, again, alone, cold, wait


def parse(body: bytes) -> Any:
    """The JSON of a body that came with status 200. Raises Trouble where it is none."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        start = one_line(body[:120].decode("utf-8", "replace"))
        hint = next((words for sign, words in NOT_JSON.items() if start.startswith(sign)), "truncated or not JSON")
        raise Trouble(f"status 200, but {hint} ({start or 'empty'})", cold=True) from None
    if _deeper(raw, MAX_DEPTH):
        raise Trouble(f"status 200, but JSON of more than {MAX_DEPTH} levels", cold=True)
    return raw


def read_completion(raw: Any, status: int = 200) -> tuple[str, str, tuple[int | None, int | None]]:
    """(text, finish reason, (prompt tokens, completion tokens)) of a response's JSON.

    Raises Trouble where it is not a chat completion, and where the endpoint says that it stopped the model. A null or
    empty content is an answer, an empty one, if there was a reason to stop.
    """
    choices = raw.get("choices") if isinstance(raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    first = first if isinstance(first, dict) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        said = one_line(json.dumps(raw)[:200])
        raise Trouble(f"status {status}, but not a chat completion (no choices[0].message): {said}", cold=True)
    content = _joined(message.get("content"))
    if not isinstance(content, str | None):
        raise Trouble(f"status {status}, but the message's content is a {type(content).__name__}, not text", cold=True)
    reason = first.get("finish_reason")
    reason = _encodable(reason) if isinstance(reason, str) else ""
    if reason in NOT_THE_MODEL:
        raise Trouble(f"status {status}, but the endpoint stopped the model: finish_reason {reason}")
    if not content and raw.get("error") and reason != "content_filter":
        raise Trouble(f"status {status}, but an error and no text: {one_line(json.dumps(raw['error'])[:200])}")
    if not content and not reason:
        raise Trouble(f"status {status}, but neither text nor a finish_reason")
    usage = raw.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return _encodable(content or ""), reason, (_count(usage, "prompt"), _count(usage, "completion"))


def retry_after(headers: Any) -> float | None:
    """Seconds that a response asks to wait: retry-after-ms, or Retry-After as seconds or as a date; None without.

    A date is read against the server's own clock where it tells it: ours may be wrong, or jump.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    then, now = (_moment(headers.get(name)) for name in ("retry-after", "date"))
    return None if then is None else max(0.0, then - (time.time() if now is None else now))


def one_line(text: str) -> str:
    """A server's words, fit for a line of a log and for a terminal."""
    line = " ".join(text.split())
    return "".join(character if character.isprintable() else "?" for character in line)


def _moment(date: str | None) -> float | None:
    """Unix seconds of an HTTP date; None where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None


def _deeper(value: Any, levels: int) -> bool:
    """Whether a JSON value is nested more than `levels` deep."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(layer)


def _joined(content: Any) -> Any:
    """The text of a content that comes as a list of parts, what is said aloud alone; any other content as it is."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part.get("text") for part in content if part.get("type") == "text"]
    return "".join(texts) if texts and all(isinstance(text, str) for text in texts) else content


def _encodable(text: str) -> str:
    """A lone surrogate would not reach a file."""
    return text.encode("utf-8", "replace").decode()


def _count(usage: dict[str, Any], kind: str) -> int | None:
    value = usage.get(f"{kind}_tokens")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None
