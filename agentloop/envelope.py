"""What stands around an answer's text: characters no file holds, a chat turn's end, the reasoning before the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

MAX_ANSWER = 2_000_000  # characters read of an answer, from its end, where the code stands
THOUGHT_ENDS = ("</think>", "</thinking>", "</reasoning>", "<|channel|>final<|message|>")
THOUGHT_STARTS = ("<think>", "<thinking>", "<reasoning>")
END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|return|>", "<|end|>", "</s>")


def clean(text: str, steps: list[str]) -> str:
    """Bytes that no Python file holds, and the end of a chat turn, removed."""
    if len(text) > MAX_ANSWER:
        steps.append(f"read only the last {MAX_ANSWER} of {len(text)} characters")
        text = text[-MAX_ANSWER:]
    whole = text.encode("utf-8", "replace").decode("utf-8")
    changes: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("replaced unpaired surrogates", lambda _: whole),
        ("removed NUL characters", lambda t: t.replace("\0", "")),
        ("removed a byte order mark", lambda t: t.removeprefix("\ufeff")),
        ("made line ends \\n", lambda t: t.replace("\r\n", "\n").replace("\r", "\n")),
        ("removed form feeds", lambda t: t.replace("\f", "")),
        ("removed an end-of-turn token", _without_end_token),
    )
    for step, change in changes:
        changed = change(text)
        if changed != text:
            steps.append(step)
        text = changed
    return text


def _without_end_token(text: str) -> str:
    for token in END_TOKENS:
        if text.rstrip().endswith(token):
            return text.rstrip()[: -len(token)]
    return text


def without_thought(text: str) -> Iterator[tuple[str, list[str]]]:
    """What was said after the reasoning, then (where that gave nothing) everything."""
    ends = [(text.rfind(mark) + len(mark)) for mark in THOUGHT_ENDS if mark in text]
    if ends:
        yield text[max(ends) :], ["removed the reasoning before the answer"]
        for mark in (*THOUGHT_STARTS, *THOUGHT_ENDS):
            text = text.replace(mark, "\n")
        yield text, ["took code from inside the reasoning"]
    elif any(text.lstrip().startswith(mark) for mark in THOUGHT_STARTS):
        return  # cut off while still thinking: there is no answer
    else:
        yield text, []
