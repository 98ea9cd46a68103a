"""The offline author: a simulation of a model that writes kernels, so that the whole loop runs without one.

It sees only the messages of a request. For a task that it knows it writes a right kernel with none to three mistakes,
drawn by seed; asked again with its last answer and feedback, it mends with a chance that grows with what the feedback
says (a shrunk case more than a case as found, that more than an error, that more than a bare "failed"). Feedback that
points at nothing in its code misleads it. An unknown task gets a wrong answer that says so.

The chances below are chosen, not measured: figures made with this author show that the loop works, and nothing about
models.
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentloop.authors import evidence
from agentloop.authors.evidence import Evidence
from agentloop.authors.knowledge import Knowledge, Mistake, Skill, plain, possible_mistakes
from agentloop.authors.server import CHARACTERS_PER_TOKEN, Said
from agentloop.extraction import extract
from oracle.syntax import parse

# Chance of 0, 1, 2 and 3 mistakes in a first answer.
MISTAKES = (0.25, 0.45, 0.22, 0.08)

# How often a mistake of each nature is made, relative to the others: as in what models are seen to write, most are
# about edges, addresses and dtypes.
HABITS = {
    "bounds": 4.0,
    "padding": 4.0,
    "addressing": 4.0,
    "precision": 3.0,
    "special": 2.0,
    "formula": 2.0,
    "keyword": 1.0,
    "host": 1.0,
}

# Chance to undo a mistake that the evidence points at; for a bare "failed", any mistake.
MENDS = {
    evidence.SHRUNK: 0.85,
    evidence.CASE: 0.6,
    evidence.ERROR: 0.35,
    evidence.VERDICT: 0.15,
    evidence.NAIVE_FAIL: 0.15,
    evidence.NAIVE_PASS: 0.04,
}
SLIPS = 0.06  # chance to make a new mistake while changing anything
MISLEADS = 0.5  # chance to make a new mistake where the evidence fits nothing that is wrong


class OfflineAuthor:
    """The simulation as a server's speaker. Its answers follow from `seed`, the request's messages and its `seed`;
    `max_tokens` cuts them, other sampling parameters change nothing."""

    kind = "offline"
    models: tuple[str, ...] = ("offline",)
    fingerprint = "offline (simulation)"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.knowledge = Knowledge()

    def say(self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]) -> Said:
        draws = random.Random(_digest(self.seed, model, parameters.get("seed"), list(messages)))
        asked = next((m["content"] for m in messages if m["role"] == "user"), "")
        task = self.knowledge.recognise(asked)
        source = self._unknown(asked) if task is None else self._known(task, messages, draws)
        limit = parameters.get("max_completion_tokens") or parameters.get("max_tokens")
        return _cut(_worded(source, task is not None), limit)

    def _known(self, task: str, messages: Sequence[Mapping[str, str]], draws: random.Random) -> str:
        before = [m["content"] for m in messages if m["role"] == "assistant"]
        told = messages[-1]["content"] if messages[-1]["role"] == "user" else ""
        lines = _lines(before[-1], self.knowledge.tasks[task].entry) if before else None
        skill = self.knowledge.nearest(task, lines) if lines else None
        if skill is None or lines is None:
            return first_answer(self.knowledge.skills[task], draws)
        found = evidence.read(told)
        if found.call not in (None, self.knowledge.tasks[task].signature):
            found = Evidence(found.level)  # a case of another function points at nothing here
        return skill.written(revised(skill, skill.mistakes_in(lines), found, draws))

    def _unknown(self, asked: str) -> str:
        return COPY.replace("SIGNATURE", _signature(asked))


def first_answer(skills: Sequence[Skill], draws: random.Random) -> str:
    """One of the right kernels with a few mistakes."""
    skill = draws.choice(skills)
    mistakes: list[Mistake] = []
    for _ in range(draws.choices(range(len(MISTAKES)), MISTAKES)[0]):
        mistakes = one_more(skill, mistakes, frozenset(HABITS), draws)
    return skill.written(mistakes)


def revised(skill: Skill, mistakes: list[Mistake], told: Evidence, draws: random.Random) -> list[Mistake]:
    """The mistakes that are left, and new ones, after reading the feedback."""
    if not mistakes:
        return mistakes
    pointed = told.level in (evidence.ERROR, evidence.CASE, evidence.SHRUNK)
    fitting = _fitting(mistakes, told) if pointed else mistakes
    if not fitting:
        return one_more(skill, mistakes, told.suspects, draws) if draws.random() < MISLEADS else mistakes
    if draws.random() < MENDS[told.level]:
        mended = draws.choice(fitting)
        mistakes = [m for m in mistakes if m is not mended]
        return one_more(skill, mistakes, frozenset(HABITS), draws) if draws.random() < SLIPS else mistakes
    return mistakes


def one_more(skill: Skill, mistakes: list[Mistake], natures: frozenset[str], draws: random.Random) -> list[Mistake]:
    """A further mistake at another place, of one of these natures where there is one: first the nature is drawn by
    `HABITS`, then the mistake."""
    free = [m for m in possible_mistakes(skill).values() if not any(m.overlaps(made) for made in mistakes)]
    by_nature = {n: [m for m in free if n in m.natures] for n in sorted(natures)}
    open_to = [n for n, possible in by_nature.items() if possible]
    if not open_to:
        return mistakes
    nature = draws.choices(open_to, [HABITS[n] for n in open_to])[0]
    return [*mistakes, draws.choice(by_nature[nature])]


def _fitting(mistakes: Sequence[Mistake], told: Evidence) -> list[Mistake]:
    """The mistakes that the evidence points at: those on a line that the traceback names, else those of a nature that it
    suspects."""
    named, shift = [], 0
    for mistake in sorted(mistakes, key=lambda m: m.start):
        first = mistake.start + shift + 1
        if told.lines & set(range(first, first + max(len(mistake.lines), 1))):
            named.append(mistake)
        shift += len(mistake.lines) - (mistake.end - mistake.start)
    return named or [mistake for mistake in mistakes if mistake.natures & told.suspects]


@lru_cache(maxsize=1024)
def _lines(answer: str, entry: str) -> tuple[str, ...] | None:
    """The code of an answer of its own; None where there is none that parses."""
    source = extract(answer, entry).source
    try:
        return plain(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _digest(*parts: Any) -> int:
    data = json.dumps(parts, sort_keys=True, default=str).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _worded(source: str, known: bool) -> str:
    lead = (
        "The file:" if known else "I do not know this function. This file is not right: it copies its first argument."
    )
    return f"{lead}\n\n```python\n{source}```\n"


def _cut(text: str, limit: Any) -> Said:
    if isinstance(limit, int) and len(text) > limit * CHARACTERS_PER_TOKEN:
        return Said(text[: limit * CHARACTERS_PER_TOKEN], "length")
    return Said(text)


def _signature(asked: str) -> str:
    """NAME(PARAMETERS) as Python, from the first thing in the prompt that looks like it."""
    for name, parameters in re.findall(r"\b([A-Za-z_]\w{0,80})\(([^()\n]{0,400})\)", asked[:200_000]):
        try:
            function = parse(f"def {name}({parameters}): pass").body[0]
        except SyntaxError:
            continue
        assert isinstance(function, ast.FunctionDef)
        if function.args.args:
            return f"{name}({parameters}):\n    x = {function.args.args[0].arg}"
    return "answer(x):\n    x = x"


COPY = """import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(x_ptr + index, mask=index < count, other=0), mask=index < count)


def SIGNATURE
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""
