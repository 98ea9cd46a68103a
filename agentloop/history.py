"""What a later request repeats of an episode so far, and what of it is shortened where a prompt has a token budget.

Shortened, the least useful first: earlier answers, then earlier turns as a whole, the oldest first; then the traceback
of the last failure, from its start; then the last answer, in its middle. The first request, the other words on the
failure and the last counterexample are never shortened: a prompt that holds nothing else may be over its budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentloop.failures import MAX_DETAIL
from agentloop.tokens import PER_MESSAGE, estimated_tokens

MAX_ANSWER = 24_000  # characters of the author's own answer that are repeated to it
DETAILS = (MAX_DETAIL, MAX_DETAIL // 4, 0)  # bytes of the traceback that are told, in the order tried
FRAME = 128  # bytes that stand around a repeated answer at most: its fence, the words on what was left out
LEFT_OUT = "(an earlier answer, left out here)"

Message = dict[str, str]


@dataclass(frozen=True)
class Turn:
    """What the author answered, and what it was told of it."""

    answer: str
    told: str

    def messages(self) -> list[Message]:
        return [{"role": "assistant", "content": self.answer}, {"role": "user", "content": self.told}]


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """The turns that follow a first request."""
    contents = [message["content"] for message in messages]
    return [Turn(*pair) for pair in zip(contents[::2], contents[1::2], strict=True)]


def conversation(
    first: Sequence[Message], earlier: Sequence[Turn], last: Callable[[int, int], Turn], budget: int | None
) -> list[Message]:
    """The first request and the turns, at most about `budget` tokens long (None: unbounded) where that can be.

    `last(answer, detail)` words the last turn with at most so many characters of the answer and bytes of traceback.
    """
    for turns in _ever_shorter(list(earlier), last):
        messages = [*first, *(message for turn in turns for message in turn.messages())]
        if budget is None or estimated_tokens(messages) <= budget:
            return messages

    def over(characters: int) -> bool:
        return estimated_tokens([*first, *last(characters, 0).messages()]) > (budget or 0)

    kept = max(0, bisect_left(range(MAX_ANSWER), True, key=over) - 1)
    return [*first, *last(kept, 0).messages()]


def _ever_shorter(earlier: list[Turn], last: Callable[[int, int], Turn]) -> Iterator[list[Turn]]:
    """All turns whole, then one part after another shortened or left out, but for the last answer."""
    whole = last(MAX_ANSWER, MAX_DETAIL)
    yield [*earlier, whole]
    for index, turn in enumerate(earlier):
        earlier[index] = replace(turn, answer=LEFT_OUT)
        yield [*earlier, whole]
    while earlier:
        earlier.pop(0)
        yield [*earlier, whole]
    yield from ([last(MAX_ANSWER, detail)] for detail in DETAILS[1:])


def most_repeated(answer: int | None) -> int:
    """A bound on the tokens of one turn without what is told: an answer of at most `answer` tokens, said back."""
    whole = 4 * MAX_ANSWER  # bytes
    return 2 * PER_MESSAGE + FRAME + (whole if answer is None else min(answer, whole))


def cut_middle(text: str, most: int = MAX_ANSWER) -> str:
    """The author's own words, shortened in the middle where they are longer than `most` characters."""
    text = text.strip("\n")
    half = most // 2
    cut = f"{text[:half]}\n# … {len(text) - 2 * half} characters left out …\n{text[len(text) - half :]}"
    return cut if len(text) > max(most, len(cut)) else text
