"""From an author's answer to one Python file, tolerantly, saying what was done.

Wrapping decides verdicts: text after a closing fence, an import that the benchmark's own harness used to supply. So the
wrapping is mended and each step is recorded, while code inside a closed fence is taken as it is: an error there is the
author's. Everything works on lines and plain string search over bounded text: no input makes it slow.
"""

from __future__ import annotations

import ast
import html
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from agentloop.envelope import clean, without_thought
from agentloop.fences import Block, blocks, widened
from agentloop.names import Names, names, stray_words
from oracle.syntax import parse

MAX_SOURCE = 200_000  # characters of one block; larger ones are not a kernel file
MAX_BLOCKS = 40  # blocks looked at, from the end
PARSE_BUDGET = 4_000_000  # characters parsed in all, a few seconds at worst
MAX_CUTS = 12  # prose lines removed one by one before giving up

IMPORTS = {"torch": "import torch", "triton": "import triton", "tl": "import triton.language as tl"}
LOOKALIKES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u202f": " ", "−": "-", "–": "-"}
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff")
)
ENTITIES = ("&lt;", "&gt;", "&amp;", "&quot;")
UNESCAPED = "decoded HTML entities"
CODE_STARTS = ("import ", "from ", "@", "def ", "class ", "async def ", "#", '"""', "'''")


@dataclass(frozen=True)
class Extraction:
    """`source` is None where the answer holds no code. `method` says where it stood: "fenced", "unfenced", "joined"
    (several blocks) or "none". `steps` are the changes made, in order, in words."""

    source: str | None
    method: str
    steps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {"method": self.method, "steps": list(self.steps)}


@dataclass
class _Budget:
    left: int = PARSE_BUDGET

    def parse(self, code: str) -> ast.Module | SyntaxError:
        """The tree, or the error (without a position where Python gives none, or where the budget is spent)."""
        self.left -= len(code)
        if self.left < 0 or len(code) > MAX_SOURCE:
            return SyntaxError("too long to parse")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return parse(code)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))


@dataclass
class _Found:
    """One block after mending. `tree` is None where it does not parse; `code` is then the block as it stood."""

    block: Block
    code: str
    tree: ast.Module | None
    steps: list[str] = field(default_factory=list)

    @cached_property
    def names(self) -> Names | None:
        return None if self.tree is None else names(self.tree)

    def rank(self, entry: str, place: int) -> tuple[bool, bool, bool, bool, int]:
        """Best is greatest: parses and defines the entry; mentions its definition; uses Triton; fenced; last."""
        defines = self.names is not None and entry in self.names.top
        says = f"def {entry}(" in self.code
        return defines, says, "triton" in self.code, self.block.fenced, place


def extract(text: str, entry: str) -> Extraction:
    """The one file in `text` that should define the function `entry`. Never raises; see `Extraction`."""
    steps: list[str] = []
    text = clean(text, steps)
    budget = _Budget()
    answers = list(without_thought(text))
    best: tuple[_Found, str, list[str]] | None = None
    for answer, note in answers:
        result = _choose(answer, entry, budget)
        if result is None:
            continue
        found, method = result
        if best is None or (found.rank(entry, 0) > best[0].rank(entry, 0)):
            best = found, method, [*note, *found.steps]
        if found.rank(entry, 0)[0]:
            break
    if best is None:
        return Extraction(None, "none", tuple(steps))
    found, method, more = best
    code = found.code
    if found.tree is not None:
        code = _with_imports(found, more)
    return Extraction(code.strip("\n") + "\n", method, (*steps, *more))


def _choose(text: str, entry: str, budget: _Budget) -> tuple[_Found, str] | None:
    """The best block of one answer, joined with the blocks whose names it needs; None where there is no code at all."""
    pieces = [block for block in blocks(text) if _codelike(block)][-MAX_BLOCKS:]
    found = [_mend(block, entry, budget) for block in pieces]
    if not found:
        return None
    if not any(item.rank(entry, 0)[0] for item in found):
        for block in pieces:
            found += _grown(text, block, entry, budget)
    place = max(range(len(found)), key=lambda i: found[i].rank(entry, i))
    best = found[place]
    method = "fenced" if best.block.fenced else "unfenced"
    if best.tree is None:
        return best, method
    joined = _join(found, place, budget)
    return (joined, "joined") if joined is not None else (best, method)


def _codelike(block: Block) -> bool:
    """A fenced block that is not blank, or plain text in which some line starts as code does."""
    if len(block.text) > MAX_SOURCE:
        return False
    if block.fenced:
        return bool(block.text.strip())
    return any(line.lstrip().startswith(CODE_STARTS) and not _prose(line) for line in block.text.split("\n"))


def _grown(text: str, block: Block, entry: str, budget: _Budget) -> list[_Found]:
    """A fenced block that stops too early because its own text (a docstring) holds fences: end it at a later fence."""
    if not block.fenced or f"def {entry}(" not in "\n".join(text.split("\n")[block.start :]):
        return []
    for wider in widened(text, block):
        tree = budget.parse(wider.text)
        if isinstance(tree, ast.Module) and entry in names(tree).top:
            return [_Found(wider, wider.text, tree, ["kept fences inside the code"])]
    return []


def _mend(block: Block, entry: str, budget: _Budget) -> _Found:
    """Wrapping undone, each change only if the code does not parse without it."""
    code = block.text
    tree = budget.parse(code)
    steps: list[str] = []
    fixes: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("removed the indentation of the whole block", _dedent),
        ("turned tabs into spaces", lambda c: c.expandtabs(4)),
        ("replaced typographic quotes, dashes and spaces", lambda c: c.translate(LOOKALIKES)),
        (UNESCAPED, html.unescape),
    )
    if isinstance(tree, ast.Module) and any(entity in code for entity in ENTITIES) and _escaped(tree):
        code, steps = html.unescape(code), [UNESCAPED]  # `a &lt; b` is valid Python: a & lt; b
        tree = budget.parse(code)
    for step, fix in fixes:
        if isinstance(tree, ast.Module):
            break
        fixed = fix(code)
        if fixed != code:
            code, steps = fixed, [*steps, step]
            tree = budget.parse(code)
    if isinstance(tree, SyntaxError):
        code, steps = block.text, []
    if not block.closed:
        code, tree = _without_prose(code, tree, steps, entry, budget)
    if isinstance(tree, ast.Module):
        return _Found(block, code, tree, steps)
    return _Found(block, block.text, None)


def _escaped(tree: ast.Module) -> bool:
    """Whether an entity stands in the code itself and not in a string: its name is then used and bound nowhere."""
    return any(entity[1:-1] in names(tree).lacking for entity in ENTITIES)


def _dedent(code: str) -> str:
    """Common indentation removed; also where only the first line lost its own."""
    first, _, rest = code.lstrip("\n").partition("\n")
    if first[:1] not in (" ", "\t") and first and not first.rstrip().endswith(":"):
        return first + "\n" + textwrap.dedent(rest)
    return textwrap.dedent(code)


def _without_prose(
    code: str, tree: ast.Module | SyntaxError, steps: list[str], entry: str, budget: _Budget
) -> tuple[str, ast.Module | SyntaxError]:
    """Unfenced text: drop prose before, between and after the code, found as the lines at which parsing stops."""
    lines = code.split("\n")
    start = next((i for i, line in enumerate(lines) if line.startswith(CODE_STARTS) and not _prose(line)), 0)
    if start and isinstance(tree, SyntaxError):
        lines = lines[start:]
        steps.append(f"dropped {start} lines before the code")
        tree = budget.parse("\n".join(lines))
    for _ in range(MAX_CUTS):
        if isinstance(tree, ast.Module) or not tree.lineno:
            break
        bad = min(tree.lineno, len(lines)) - 1
        tail = lines[bad + 1 :]
        if any(line.startswith(("def ", "@")) for line in tail) and lines[bad][:1].strip():
            steps.append(f"dropped a line of prose: {lines[bad][:60]!r}")
            lines = [*lines[:bad], "", *tail]
        else:
            end = _statement_start(lines, bad)
            if any(line.startswith(f"def {entry}(") for line in lines[end:]):
                break  # the function itself is broken: the author's error
            steps.append(f"dropped {len(lines) - end} lines after the code")
            lines = lines[:end]
        if not any(line.strip() for line in lines):
            break
        tree = budget.parse("\n".join(lines))
    if isinstance(tree, ast.Module):
        stray = stray_words(tree)
        if stray:
            steps.append("dropped stray words: " + ", ".join(repr(lines[n][:40]) for n in stray[:3]))
            lines = ["" if n in stray else line for n, line in enumerate(lines)]
            tree = budget.parse("\n".join(lines))
    return "\n".join(lines), tree


def _statement_start(lines: list[str], bad: int) -> int:
    """Where the top-level statement that holds line `bad` begins, its decorators included."""
    start = bad
    while start > 0 and (not lines[start].strip() or lines[start][0] in " \t)]}#"):
        start -= 1
    while start > 0 and lines[start - 1].startswith("@"):
        start -= 1
    return start


def _prose(line: str) -> bool:
    """`from` and `import` also begin English sentences; an import statement has no full stop at its end."""
    words = line.split()
    return bool(words) and words[0] in ("from", "import") and (line.rstrip()[-1:] in ".:!" or words[1:2] == ["the"])


def _join(found: list[_Found], place: int, budget: _Budget) -> _Found | None:
    """The best block behind the other blocks that define names it uses and lacks, in the order they were given."""
    best = found[place]
    assert best.names is not None
    taken = {place}
    lacking = best.names.lacking
    for index in reversed(range(len(found))):
        other = found[index]
        if index in taken or other.names is None or not other.block.fenced:
            continue
        gives = other.names.top & lacking - IMPORTS.keys()
        if gives:
            taken.add(index)
            lacking = (lacking - gives) | other.names.lacking
    if len(taken) == 1:
        return None
    order = [*sorted(taken - {place}), place]
    code = "\n\n".join(found[index].code.strip("\n") for index in order)
    tree = budget.parse(code)
    if not isinstance(tree, ast.Module):
        return None
    steps = [step for index in order for step in found[index].steps]
    return _Found(best.block, code, tree, [*steps, f"joined {len(order)} code blocks"])


def _with_imports(found: _Found, steps: list[str]) -> str:
    """`torch`, `triton` and `tl` imported where they are used and never bound."""
    assert found.tree is not None
    assert found.names is not None
    missing = [name for name in IMPORTS if name in found.names.lacking]
    steps += [f"added `{IMPORTS[name]}`" for name in missing]
    futures = [n for n in found.tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    after = max((node.end_lineno or 0 for node in futures), default=0)
    lines = found.code.split("\n")
    return "\n".join([*lines[:after], *(IMPORTS[name] for name in missing), *lines[after:]])
