"""What the offline author knows: right kernels of some tasks, and the mistakes it can make in each.

A mistake is a mutant of the corpus' mutation engine, kept as the lines in which it differs from the right kernel. So
several can be made at once, and those in an answer can be found again by comparing it with the right kernel: the author
remembers nothing between requests.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentloop.authors.evidence import natures
from agentloop.content import load_tasks
from agentloop.views import pytorch, summary
from oracle.corpus import right_kernels
from oracle.corpus.mutate import mutants
from oracle.schema import Task
from oracle.syntax import parse

MAX_LINES = 3  # a change of more lines at once is not one mistake
LIKENESS = 0.5  # share of lines in common from which an answer counts as a variant of a known kernel


Place = tuple[int, int, tuple[str, ...]]  # first line and end in the right kernel, and what stands there instead


@dataclass(frozen=True)
class Mistake:
    """Lines [start, end) of the right kernel read `lines` instead. `natures` are of `evidence.NATURES`."""

    start: int
    end: int
    lines: tuple[str, ...]
    natures: frozenset[str]

    def overlaps(self, other: Mistake) -> bool:
        """Two changes at one place cannot be told apart afterwards: neighbours count too."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Skill:
    """One right kernel, as plain lines."""

    task: str
    lines: tuple[str, ...]

    def written(self, mistakes: Iterable[Mistake]) -> str:
        """The kernel's source with these mistakes in it; they must not overlap."""
        lines = list(self.lines)
        for mistake in sorted(mistakes, key=lambda m: m.start, reverse=True):
            lines[mistake.start : mistake.end] = mistake.lines
        return "\n".join(lines) + "\n"

    def mistakes_in(self, lines: tuple[str, ...]) -> list[Mistake]:
        """Where these lines differ from the right ones, line by line where as many stand on both sides."""
        found: list[Place] = []
        for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, self.lines, lines, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            if i2 - i1 == j2 - j1:
                found += [(i, i + 1, lines[j : j + 1]) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            else:
                found.append((i1, i2, lines[j1:j2]))
        known = possible_mistakes(self)
        return [known.get(place) or Mistake(*place, natures=natures("")) for place in found]


@lru_cache(maxsize=256)
def possible_mistakes(skill: Skill) -> dict[Place, Mistake]:
    """Every single mistake that the mutation engine makes of a right kernel, where it changes lines next to each other."""
    found: dict[Place, Mistake] = {}
    for mutant in mutants(skill.written(())):
        place = _difference(skill.lines, tuple(mutant.source.rstrip("\n").split("\n")))
        if place[1] - place[0] <= MAX_LINES:
            found.setdefault(place, Mistake(*place, natures=natures(mutant.operator)))
    return found


def _difference(right: tuple[str, ...], wrong: tuple[str, ...]) -> Place:
    """Start and end in `right`, and the lines of `wrong` in between, without what both begin and end with."""
    shorter = min(len(right), len(wrong))
    start = next((i for i in range(shorter) if right[i] != wrong[i]), shorter)
    end = next((i for i in range(shorter - start) if right[-1 - i] != wrong[-1 - i]), shorter - start)
    return start, len(right) - end, wrong[start : len(wrong) - end]


class Knowledge:
    """The tasks that the author knows and its right kernels of each. Recognises a task by the words of a prompt."""

    def __init__(self) -> None:
        self.tasks = {task_id: task for task_id, task in load_tasks().items() if right_kernels(task_id)}
        self.skills = {task_id: _skills(task) for task_id, task in self.tasks.items()}
        self._marks = {task_id: _marks(task) for task_id, task in self.tasks.items()}

    def recognise(self, prompt: str) -> str | None:
        """The id of the known task that a prompt asks for, or None. It must give the signature or the PyTorch code; the
        contract decides between suites, and the more general suite `ops` where nothing else does."""
        words = " ".join(prompt.split())
        best, most = None, (0, False)
        for task_id, marks in self._marks.items():
            asked = (sum(weight for weight, mark in marks if mark in words), task_id.startswith("ops/"))
            if asked > most and any(mark in words for _, mark in marks[:-2]):
                best, most = task_id, asked
        return best

    def nearest(self, task_id: str, lines: tuple[str, ...]) -> Skill | None:
        """The right kernel that an answer is a variant of, or None."""
        likeness = [
            (difflib.SequenceMatcher(None, skill.lines, lines, autojunk=False).ratio(), -place, skill)
            for place, skill in enumerate(self.skills[task_id])
        ]
        ratio, _, skill = max(likeness, key=lambda item: item[:2])
        return skill if ratio >= LIKENESS else None


def plain(source: str) -> tuple[str, ...]:
    """A source's lines without comments, module docstring and formatting of its own. Raises SyntaxError, ValueError."""
    tree = parse(source)
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    return tuple(ast.unparse(tree).split("\n"))


def _marks(task: Task) -> list[tuple[int, str]]:
    """What in a prompt tells that it asks for this task, and how much: signature, code, then sentence and contract."""
    named = [(1, f"{before}{task.signature}") for before in ("`", "Wrapper: ")]
    code = [(2, " ".join(pytorch(task).split()))] if pytorch(task) else []
    return [*named, *code, (2, summary(task)), (4, " ".join(task.contract.split()))]


def _skills(task: Task) -> tuple[Skill, ...]:
    return tuple(Skill(task.id, plain(kernel.source)) for kernel in right_kernels(task.id))
