"""Markdown fences, as models really write them: unclosed, orphaned, stuck to the end of a line, nested in docstrings.

Line by line, with plain string operations only, so that the time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_WIDENINGS = 6


@dataclass(frozen=True)
class Block:
    """Lines [start, end) of the text. `fenced`: an opening fence stands before them; `closed`: a closing one after."""

    text: str
    fenced: bool
    closed: bool
    start: int
    end: int


@dataclass(frozen=True)
class _Fence:
    """A run of backticks or tildes on a line: what stands before and after it on the same line."""

    marker: str
    before: str
    after: str

    @property
    def opens(self) -> bool:
        """A language word (or nothing) may follow an opening fence; a sentence follows only a closing one."""
        return len(self.after.split()) <= 1 or self.after.lstrip().startswith("{")


def blocks(text: str) -> Iterator[Block]:
    """Every stretch of text between fences, those outside fences included, in order."""
    lines = text.split("\n")
    start, lead, opened = 0, "", None
    for number, line in enumerate(lines):
        fence = _fence(line)
        if fence is None:
            continue
        if opened is not None and not _closes(fence, opened):
            continue
        yield _block(lines, start, number, lead, fence.before, opened is not None, True)
        if opened is not None and (not fence.after.strip() or not fence.opens):
            opened, lead = None, fence.after
        elif opened is None and not fence.opens:
            lead = fence.after  # an orphaned closing fence with prose behind it
        else:
            opened, lead = fence.marker, ""
        start = number + 1
    yield _block(lines, start, len(lines), lead, "", opened is not None, False)


def widened(text: str, block: Block) -> Iterator[Block]:
    """The block ended at later fences instead, nearest first."""
    lines = text.split("\n")
    tries = 0
    for number in range(block.end + 1, len(lines)):
        if _fence(lines[number]) is not None:
            yield _block(lines, block.start, number, "", "", True, True)
            tries += 1
            if tries == MAX_WIDENINGS:
                return


def _block(lines: list[str], start: int, end: int, lead: str, tail: str, fenced: bool, closed: bool) -> Block:
    body = lines[start:end]
    if lead.strip():
        body = [lead.strip(), *body]
    if tail.strip():
        body = [*body, tail.rstrip()]
    return Block("\n".join(body), fenced, fenced and closed, start, end)


def _closes(fence: _Fence, opened: str) -> bool:
    """CommonMark: the same character, at least as long. A fence with a language word opens the next block instead."""
    return fence.marker[0] == opened[0] and len(fence.marker) >= len(opened)


def _fence(line: str) -> _Fence | None:
    for mark in ("```", "~~~"):
        at = line.find(mark)
        if at < 0:
            continue
        before, rest = line[:at], line[at:]
        after = rest.lstrip(mark[0])
        alone = not before.strip(" \t>*-0123456789.")
        if mark in after or (not alone and (mark == "~~~" or len(after.split()) > 1)):
            continue  # inline code, or a fence quoted inside a sentence
        return _Fence(rest[: len(rest) - len(after)], "" if alone else before, after)
    return None
