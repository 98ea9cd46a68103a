"""A failure and its counterexample in plain words and short lines: what the templates of a feedback arm may use.

Everything is bounded: whatever a candidate returned or raised, what is told of it stays within `MAX_*` bytes of UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from agentloop.tokens import utf8_bytes
from oracle.dtypes import FLOATS
from oracle.schema import TIERS, Task
from oracle.values import REGIMES
from oracle.verdict import Counterexample, Failure, NaiveResult, Verdict

MAX_LINE = 1_500  # bytes of one message or of one array
MAX_WORDS = 300  # bytes of anything shorter: sizes, a layout, one wrong element
MAX_DETAIL = 3_000  # bytes of a traceback, kept from its end
MAX_SHOWN = 64  # elements of an array written out
MAX_WORST = 8  # wrong elements listed
MORE = " …"


def failure_view(
    task: Task,
    source: str | None,
    verdict: Verdict | None,
    naive: NaiveResult | None,
    meanings: Mapping[str, str],
    detail: int = MAX_DETAIL,
) -> dict[str, Any]:
    """Names a feedback arm's templates may use beside `task_view`'s; at most `detail` bytes of a traceback.

    failure   kind, tier, meaning, message, detail; None where nothing failed that could be judged
    naive     status and reason of the `kernelbench` profile, or None
    found, shrunk   the counterexample as found and as shrunk (see `_shared/counterexample.j2`), or None
    """
    failure = Failure("no_code", "", "") if source is None else verdict.failure if verdict else None
    counterexample = verdict.counterexample if verdict and source is not None else None
    return {
        "no_code": source is None,
        "failure": None if failure is None else _failure(failure, meanings, detail),
        "naive": None if naive is None else {"status": naive.status, "reason": _line(naive.reason)},
        "found": None if counterexample is None else _found(task, counterexample),
        "shrunk": None if counterexample is None else counterexample_view(counterexample.to_json(), task),
    }


def widest_view(task: Task, meanings: Mapping[str, str]) -> dict[str, Any]:
    """A view in which every text is as long as `failure_view` lets one become: it bounds what an arm can say."""
    line, words = ("x" * (most + utf8_bytes(MORE)) for most in (MAX_LINE, MAX_WORDS))
    arrays = [line] * most_arrays(task)
    case = {
        "form": max((form.name for form in task.forms), key=len),
        "tier": max(TIERS, key=len),
        "inputs": [line] * max(len(form.tensors) for form in task.forms),
        "got": arrays,
        "expected": arrays,
        "worst": [words] * MAX_WORST,
        "diagnosis": line,
    }
    case |= dict.fromkeys(("dims", "dtype", "layout", "regime", "keywords", "errors"), words)
    failure = {
        "kind": max(meanings, key=len, default=""),
        "tier": max(TIERS, key=len),
        "meaning": max(meanings.values(), key=utf8_bytes, default=""),
        "message": line,
        "detail": "x" * (MAX_DETAIL + utf8_bytes(MORE) + 1),
    }
    naive = {"status": "unjudged", "reason": line}
    return {"no_code": False, "failure": failure, "naive": naive, "found": case, "shrunk": case}


def _failure(failure: Failure, meanings: Mapping[str, str], detail: int) -> dict[str, str]:
    return {
        "kind": failure.kind,
        "tier": failure.tier,
        "meaning": meanings.get(failure.kind, ""),
        "message": _line(failure.message),
        "detail": _end(_fenceless(failure.detail).strip("\n"), detail),
    }


def _found(task: Task, counterexample: Counterexample) -> dict[str, Any]:
    """The case as it was found: `original`, or the shrunk one itself where there was nothing to shrink."""
    original = counterexample.original
    example = {"case": original, **original} if original else counterexample.to_json()
    return counterexample_view(example | {"diagnosis": None}, task)


def counterexample_view(example: Mapping[str, Any], task: Task | None = None) -> dict[str, Any]:
    """A case in words, with its sides, as `_shared/counterexample.j2` and the command line tell it. `example` is a
    `Counterexample.to_json()`, or as much of one as there is; without its task nothing is left out as known."""
    case, inputs, stats = (example.get(key) or {} for key in ("case", "inputs", "stats"))
    got, expected, diagnosis = (example.get(key) for key in ("got", "expected", "diagnosis"))
    keywords = ", ".join(f"{name}={value!r}" for name, value in case.get("keywords", {}).items())
    regime = str(case.get("regime", "uniform"))
    most = most_arrays(task) if task else None
    got, expected = _arrays(got)[:most], _arrays(expected)[:most]
    return {
        "form": case.get("form", "") if task is None or len(task.forms) > 1 else "",
        "tier": case.get("tier", "base"),
        "dims": _cut(", ".join(f"{name}={size}" for name, size in case.get("dims", {}).items()) or "none", MAX_WORDS),
        "dtype": case.get("dtype", "float32"),
        "layout": _cut(case.get("layout", "contiguous"), MAX_WORDS),
        "regime": _cut(regime + (f" ({REGIMES[regime].doc})" if regime in REGIMES else ""), MAX_WORDS),
        "keywords": _cut(keywords or "defaults", MAX_WORDS),
        "inputs": [f"`{name}` {_array(array)}" for name, array in inputs.items()],
        "got": [_array(array) for array in got],
        "expected": [_array(array) for array in expected],
        "worst": _worst(got, expected) if any(array.get("values") is None for array in (*got, *expected)) else [],
        "errors": _cut(_errors(stats), MAX_WORDS),
        "diagnosis": _line(diagnosis).rstrip(".") if diagnosis else None,
    }


def _arrays(shown: Any) -> list[Mapping[str, Any]]:
    arrays = shown if isinstance(shown, (list, tuple)) else [shown]
    return [array for array in arrays if isinstance(array, Mapping) and "shape" in array]


def most_arrays(task: Task) -> int:
    """Results that are written out: the task's, and one too many."""
    return len(task.outputs) + 1


def _array(array: Mapping[str, Any]) -> str:
    """dtype, shape, strides where they are not row-major, and the values as nested lists where they are few."""
    shape, dtype = list(array["shape"]), array.get("dtype", "")
    text = f"{dtype} {shape}"
    strides = array.get("strides")
    if strides is not None and list(strides) != _row_major(shape) and 0 not in shape:
        text += f" with strides {list(strides)}"
    values, constant = array.get("values"), array.get("constant")
    if values is None and constant is not None:
        return _cut(f"{text}: every element is {_number(constant, dtype)}")
    if values is None or len(values) > MAX_SHOWN or len(values) != prod(shape):
        return _cut(text, MAX_WORDS) + ": too large to show"
    return _cut(text + ": " + _nested([_number(value, dtype) for value in values], shape))


def _nested(values: list[str], shape: list[int]) -> str:
    """Flat strings as nested lists of `shape`."""
    if not shape:
        return values[0] if values else "[]"
    if len(shape) == 1:
        return "[" + ", ".join(values) + "]"
    step = len(values) // shape[0] if shape[0] else 0
    rows = [_nested(values[row * step : (row + 1) * step], shape[1:]) for row in range(shape[0])]
    return "[" + ", ".join(rows) + "]"


def _number(value: Any, dtype: str) -> str:
    """Enough digits to tell neighbours of the dtype apart."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.{5 if FLOATS.get(dtype, FLOATS['float32']).eps > 1e-5 else 9}g}"


def _worst(got: list[Mapping[str, Any]], expected: list[Mapping[str, Any]]) -> list[str]:
    lines = []
    for left, right in zip(got, expected, strict=False):
        wanted = {tuple(item["index"]): item.get("expected") for item in right.get("worst") or []}
        for item in left.get("worst") or []:
            index = tuple(item["index"])
            target = item.get("expected", wanted.get(index))
            dtype = left.get("dtype", "")
            returned, wanted_there = _number(item.get("got"), dtype), _number(target, dtype)
            lines.append(_cut(f"{list(index)}: returned {returned}, expected {wanted_there}", MAX_WORDS))
    return lines[:MAX_WORST]


def _errors(stats: Mapping[str, Any]) -> str:
    parts = []
    if stats.get("exceeding") is not None:
        parts.append(f"{stats['exceeding']} of {stats.get('judged', stats.get('count'))} elements beyond the tolerance")
    for name, words in (
        ("max_abs", "largest absolute error"),
        ("max_rel", "largest relative error"),
        ("max_ratio", "largest error in tolerances"),
    ):
        if isinstance(stats.get(name), (int, float)):
            parts.append(f"{words} {stats[name]:.3g}")
    return ", ".join(parts)


def _row_major(shape: list[int]) -> list[int]:
    strides, reach = [], 1
    for size in reversed(shape):
        strides.append(reach)
        reach *= max(size, 1)
    return strides[::-1]


def _line(text: str) -> str:
    return _cut(_fenceless(" ".join(str(text).split())))


def _cut(text: str, most: int = MAX_LINE) -> str:
    """The start of a text, at most `most` bytes of it."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + MORE


def _end(text: str, most: int) -> str:
    """The end of a text, at most `most` bytes of it."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    return MORE + "\n" + data[len(data) - most :].decode("utf-8", "ignore") if most else ""


def _fenceless(text: str) -> str:
    """A candidate's own text must not close the fence it is shown in."""
    return text.replace("```", "'''")
