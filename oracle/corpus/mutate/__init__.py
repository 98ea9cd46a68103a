"""A mutation engine over Triton source: small, named, deterministic faults put into a kernel file.

An operator is a function from a `Program` to the edits it would make; each edit alone makes one first-order mutant.
Mutants are for measuring a judge: those that it passes are either equivalent or holes. They split by the digest of
their text into a half to tune on and a half to score with.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from oracle.corpus.mutate import arithmetic, host, launch, memory, state
from oracle.corpus.mutate.program import Edit, Program, parsed
from oracle.syntax import parse

OPERATORS = {
    operator.__name__: operator for module in (memory, launch, arithmetic, state, host) for operator in module.OPERATORS
}
TUNING, SCORING = "tuning", "scoring"


@dataclass(frozen=True)
class Mutant:
    """One changed source.

    operator     name in `OPERATORS`.
    line         line of the change in the original source.
    description  what was there and what is there now, one line.
    digest       of `source`; equal digests are equal programs, comments, docstring and formatting aside.
    """

    source: str
    operator: str
    line: int
    description: str
    digest: str

    @property
    def half(self) -> str:
        """TUNING or SCORING, by the digest: the scoring half is not looked at while the oracle is tuned."""
        return SCORING if int(self.digest, 16) % 2 else TUNING


def mutants(source: str) -> list[Mutant]:
    """All first-order mutants of a source, each a valid Python text that differs from it; no two are equal.

    The order is fixed: by line, then by operator as listed in `OPERATORS`. Raises UsageError for a source that Python
    cannot parse.
    """
    program = Program(source)
    seen = {digest(source)}
    found = []
    for name, edit in _edits(program):
        mutant = _mutant(program, name, edit)
        if mutant is not None and mutant.digest not in seen:
            seen.add(mutant.digest)
            found.append(mutant)
    return sorted(found, key=lambda mutant: mutant.line)


def apply(source: str, seed: int, count: int) -> tuple[str, list[Mutant]]:
    """A source with `count` faults picked by seed one after the other, and the mutant after each step.

    The first k faults of a seed are the same for every count ≥ k, so that leaving the last one out mends it. Fewer
    than `count` come back only if nothing more can be changed.
    """
    made: list[Mutant] = []
    seen = {digest(source)}
    for step in range(count):
        program = Program(source)
        edits = list(_edits(program))
        for index in sorted(range(len(edits)), key=lambda index: _draw(seed, step, index)):
            mutant = _mutant(program, *edits[index])
            if mutant is not None and mutant.digest not in seen:
                break
        else:
            break
        seen.add(mutant.digest)
        made.append(mutant)
        source = mutant.source
    return source, made


def digest(source: str) -> str:
    """16 hexadecimal digits for a source, the same whatever its comments, formatting and module docstring."""
    return _hash(ast.unparse(parsed(source)))


def _edits(program: Program) -> Iterator[tuple[str, Edit]]:
    for name, operator in OPERATORS.items():
        for edit in operator(program):
            yield name, edit


def _mutant(program: Program, name: str, edit: Edit) -> Mutant | None:
    """The mutant of an edit; None if its text is not valid Python."""
    before = ast.unparse(edit.node)
    replacement = ast.Pass() if edit.replacement is None else edit.replacement
    text = _replaced(program, edit.node, replacement)
    try:
        parse(text)
    except SyntaxError:
        return None
    after = "nothing" if edit.replacement is None else ast.unparse(edit.replacement)
    description = edit.note or f"{_short(before)} → {_short(after)}"
    return Mutant(text + "\n", name, _line(program, edit.node), description, _hash(text))


def _replaced(program: Program, node: ast.AST, replacement: ast.AST) -> str:
    """The text of the program with one node replaced; the program itself is as before afterwards."""
    parent = program.parents[node]
    for field, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, field, replacement)
            text = ast.unparse(program.tree)
            setattr(parent, field, node)
            return text
        if isinstance(value, list) and any(item is node for item in value):
            place = next(index for index, item in enumerate(value) if item is node)
            value[place] = replacement
            text = ast.unparse(program.tree)
            value[place] = node
            return text
    raise AssertionError("a node is not a child of its parent")


def _line(program: Program, node: ast.AST | None) -> int:
    while node is not None and not hasattr(node, "lineno"):
        node = program.parents.get(node)
    return getattr(node, "lineno", 0)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "…"


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _draw(seed: int, step: int, index: int) -> str:
    return hashlib.blake2b(f"{seed}:{step}:{index}".encode(), digest_size=8).hexdigest()
