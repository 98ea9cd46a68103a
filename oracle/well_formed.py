"""Whether a task says what it must, before anything is drawn, worded or judged from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oracle.dtypes import NUMPY
from oracle.layouts import LAYOUTS
from oracle.schema import Form, Output, Task
from oracle.syntax import parse
from oracle.values import REGIMES

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
FUNCTIONS = ("eager", "scale", "storage", "in_range", "pointed")


def complaints(task: Task) -> Iterator[str]:
    """One line for each field that does not hold what `oracle.schema.Task` says it holds."""
    for field in ("suite", "name"):
        value = getattr(task, field)
        if not isinstance(value, str) or not NAME.fullmatch(value):
            yield f"{field} must be a word of letters, digits, '_', '.' and '-', at most 80, not {value!r}"
    if not isinstance(task.entry, str) or not task.entry.isidentifier():
        yield f"entry must be the name of a function, not {task.entry!r}"
    if not _is_call(task.signature):
        yield f"signature must read as a call, as 'softmax(x)', not {task.signature!r}"
    if not isinstance(task.contract, str) or not task.contract.strip():
        yield "contract must say what the function computes"
    for field, kind in (("forms", Form), ("outputs", Output)):
        value = getattr(task, field)
        if not isinstance(value, tuple) or not value or not all(isinstance(item, kind) for item in value):
            yield f"{field} must be a tuple of one {kind.__name__}(…) or more, not {value!r}"
    for field in ("reference", *FUNCTIONS):
        value = getattr(task, field)
        if not callable(value) and (field == "reference" or value is not None):
            yield f"{field} must be a function, not {value!r}"
    for field, known in (("regimes", REGIMES), ("layouts", LAYOUTS), ("dtypes", NUMPY)):
        value = getattr(task, field)
        strange = [one for one in value if str(one).partition(":")[0] not in known] if _texts(value) else [value]
        if strange:
            yield f"{field} must be a tuple of some of {', '.join(known)}, not {', '.join(map(repr, strange))}"


def _texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def _is_call(signature: object) -> bool:
    """`softmax(x)`, `add(x, other, *, alpha=1) -> Tensor`: a name and its arguments."""
    if not isinstance(signature, str):
        return False
    try:
        parsed = parse(f"def {signature.partition('->')[0].strip()}: ...").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return len(parsed) == 1 and isinstance(parsed[0], ast.FunctionDef)
