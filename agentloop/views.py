"""What prompt templates may use: a task, a failure and a counterexample put into plain words and short lines.

Everything is bounded: whatever a candidate returned or raised, what is told of it stays within `MAX_*` characters.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

from oracle.dtypes import FLOATS
from oracle.schema import Form, Keyword, Output, Task, Tensor
from oracle.values import REGIMES
from oracle.verdict import Counterexample, Failure, NaiveResult, Verdict

MAX_LINE = 1_500  # characters of one message or of one array
MAX_DETAIL = 3_000  # characters of a traceback, kept from its end
MAX_SHOWN = 64  # elements of an array written out

LAYOUT_WORDS = {
    "offset": "row-major at an odd storage offset",
    "transposed": "transposed (the last two dimensions swapped in memory)",
    "sliced": "sliced (rows longer apart than they are wide, with an offset)",
    "strided": "strided (every second element)",
    "expanded": "expanded (stride 0)",
}

# Regimes that one sentence states; a regime in none of them is stated by its own line in `oracle.values`.
VALUE_WORDS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"uniform", "normal", "published", "uniform_1e3", "correlated"}),
        "ordinary ones of either sign, up to some thousand",
    ),
    (
        frozenset({"tiny", "small"}),
        "very small ones, subnormal numbers included (where the result is below the smallest normal number, zero is right)",
    ),
    (
        frozenset({"large", "max_over_10", "moderate_large", "overflow_f16"}),
        "large ones up to near the largest finite number of the dtype",
    ),
    (
        frozenset({"spread", "offset", "outlier", "half_sum"}),
        "rows with a large mean, a wide spread or one outlier, and long sums of one sign",
    ),
    (
        frozenset({"zeros", "signed_zeros", "equal", "constant_rows", "negative", "sorted_rows", "sorted", "ties"}),
        "all zero, all equal, all negative, sorted, with ties",
    ),
    (
        frozenset({"nonfinite", "one_nan", "one_inf", "infinite_rows"}),
        "NaN, inf and -inf anywhere, single or filling rows",
    ),
    (frozenset({"masked_rows"}), "masks with rows all False or all True"),
    (frozenset({"all_ignored"}), "indices that are all to be ignored"),
)
NONFINITE = VALUE_WORDS[5][0]


def task_view(task: Task) -> dict[str, Any]:
    """Names a first prompt's templates may use, beside `task` itself."""
    naive = task.naive_dims()
    return {
        "task": task,
        "summary": summary(task),
        "pytorch": pytorch(task),
        "forms": [{"name": form.name, "text": _form(form, task)} for form in task.forms],
        "dims": [f"{n} from {min(*d.values, d.base)} to {max(*d.values, d.base)}" for n, d in task.dims.items()],
        "empty": [name for name, dim in task.dims.items() if dim.empty],
        "keywords": [_keyword(keyword) for keyword in task.keywords],
        "layouts": _layouts(task),
        "values": _values(task),
        "nonfinite": bool(NONFINITE & set(task.regimes)),
        "ranged": task.in_range is not None,
        "outputs": [_output(output, len(task.outputs)) for output in task.outputs],
        "naive_shapes": [f"`{t.name}` {t.dtype or 'float32'} {list(t.sizes(naive))}" for t in task.forms[0].tensors],
    }


def failure_view(
    task: Task,
    source: str | None,
    verdict: Verdict | None,
    naive: NaiveResult | None,
    meanings: Mapping[str, str],
) -> dict[str, Any]:
    """Names a feedback arm's templates may use beside `task_view`'s.

    failure   kind, tier, meaning, message, detail; None where nothing failed that could be judged
    naive     status and reason of the `kernelbench` profile, or None
    found, shrunk   the counterexample as found and as shrunk (see `_shared/counterexample.j2`), or None
    """
    failure = Failure("no_code", "", "") if source is None else verdict.failure if verdict else None
    counterexample = verdict.counterexample if verdict and source is not None else None
    return {
        "no_code": source is None,
        "failure": None if failure is None else _failure(failure, meanings),
        "naive": None if naive is None else {"status": naive.status, "reason": _line(naive.reason)},
        "found": None if counterexample is None else _found(task, counterexample),
        "shrunk": None
        if counterexample is None
        else _counterexample(
            task,
            counterexample.case,
            counterexample.inputs,
            counterexample.got,
            counterexample.expected,
            counterexample.stats,
            counterexample.diagnosis,
        ),
    }


# --- the task -------------------------------------------------------------------------------------------------------


def summary(task: Task) -> str:
    """The contract's first sentence."""
    text = " ".join(task.contract.split())
    return text.partition(". ")[0].rstrip(".") + "."


def pytorch(task: Task) -> str:
    """The operator as PyTorch code, or "" where it has no source of its own."""
    try:
        source = textwrap.dedent(inspect.getsource(task.eager or task.reference)).strip()
    except (OSError, TypeError):
        return ""
    return source if source.startswith("def ") else ""


def _form(form: Form, task: Task) -> str:
    parts = [_tensor(tensor) for tensor in form.tensors]
    pinned = [f"{name}={value!r}" for name, value in form.keywords.items()]
    return "; ".join(parts) + (f"; with {', '.join(pinned)}" if pinned else "") + "."


def _tensor(tensor: Tensor) -> str:
    shape = ", ".join(str(entry) for entry in tensor.shape)
    text = f"`{tensor.name}` ({shape}{',' if len(tensor.shape) == 1 else ''})"
    if tensor.dtype:
        text += f" {tensor.dtype}"
    if tensor.values == "index":
        text += f", indices from 0 to {tensor.high} - 1" + (f" or `{tensor.sprinkle}`" if tensor.sprinkle else "")
    elif tensor.values == "positive":
        text += ", not negative"
    elif tensor.values == "out":
        text += ", a destination to overwrite, whatever it holds"
    return text + (", passed by name" if tensor.keyword else "")


def _keyword(keyword: Keyword) -> str:
    how = ", by position" if keyword.positional else ""
    text = f"`{keyword.name}`: " + (f"always given{how}" if keyword.required else f"{keyword.default!r} by default")
    values = [repr(value) for value in keyword.values if keyword.required or value != keyword.default]
    if keyword.required:
        values.insert(0, repr(keyword.default))
    return text + (f"; any value that makes sense, {', '.join(values[:6])} among them" if values else "")


def _layouts(task: Task) -> list[str]:
    """Layouts in words, those of all tensors first, then those of one tensor alone."""
    plain = {layout for layout in task.layouts if ":" not in layout}
    words = [LAYOUT_WORDS.get(layout, layout) for layout in task.layouts if layout in plain]
    for layout in task.layouts:
        name, _, tensor = layout.partition(":")
        if tensor and name not in plain:
            words.append(f"`{tensor}` alone {LAYOUT_WORDS.get(name, name)}")
    if plain or len(task.layouts) > 1:
        words.append("each tensor in its own way")
    return words


def _values(task: Task) -> list[str]:
    given = {"uniform", *task.regimes}
    words = [text for names, text in VALUE_WORDS if names & given]
    known = frozenset().union(*(names for names, _ in VALUE_WORDS))
    return words + [REGIMES[name].doc if name in REGIMES else name for name in sorted(given - known)]


def _output(output: Output, count: int) -> str:
    dtype = {
        "input": "the dtype of the first floating input",
        "promote": "the dtype to which PyTorch promotes the floating inputs",
    }.get(output.dtype, output.dtype)
    text = f"`{output.name}`: " if count > 1 else "The result is one tensor: "
    text += dtype
    if output.index == "first":
        text += "; among equal values the first index"
    elif output.index == "value":
        text += "; among equal values any index"
    return text + ("; contiguous." if output.contiguous else ".")


# --- a failure ------------------------------------------------------------------------------------------------------


def _failure(failure: Failure, meanings: Mapping[str, str]) -> dict[str, str]:
    return {
        "kind": failure.kind,
        "tier": failure.tier,
        "meaning": meanings.get(failure.kind, ""),
        "message": _line(failure.message),
        "detail": _fenceless(failure.detail[-MAX_DETAIL:].strip("\n")),
    }


def _found(task: Task, counterexample: Counterexample) -> dict[str, Any]:
    """The case as it was found: `original`, or the shrunk one itself where there was nothing to shrink."""
    original = counterexample.original
    if original is None:
        case, rest = counterexample.case, counterexample.to_json()
    else:
        case, rest = original.get("case", original), original
    return _counterexample(
        task, case, rest.get("inputs") or {}, rest.get("got"), rest.get("expected"), rest.get("stats") or {}, None
    )


def _counterexample(
    task: Task,
    case: Mapping[str, Any],
    inputs: Mapping[str, Any],
    got: Any,
    expected: Any,
    stats: Mapping[str, Any],
    diagnosis: str | None,
) -> dict[str, Any]:
    keywords = ", ".join(f"{name}={value!r}" for name, value in case.get("keywords", {}).items())
    regime = str(case.get("regime", "uniform"))
    shown = [*_arrays(got), *_arrays(expected)]
    return {
        "form": case.get("form", "") if len(task.forms) > 1 else "",
        "tier": case.get("tier", "base"),
        "dims": ", ".join(f"{name}={size}" for name, size in case.get("dims", {}).items()) or "none",
        "dtype": case.get("dtype", "float32"),
        "layout": case.get("layout", "contiguous"),
        "regime": regime + (f" ({REGIMES[regime].doc})" if regime in REGIMES else ""),
        "keywords": keywords or "defaults",
        "inputs": [f"`{name}` {_array(array)}" for name, array in inputs.items()],
        "got": [_array(array) for array in _arrays(got)],
        "expected": [_array(array) for array in _arrays(expected)],
        "worst": _worst(got, expected) if any(array.get("values") is None for array in shown) else [],
        "errors": _errors(stats),
        "diagnosis": _line(diagnosis).rstrip(".") if diagnosis else None,
    }


def _arrays(shown: Any) -> list[Mapping[str, Any]]:
    arrays = shown if isinstance(shown, (list, tuple)) else [shown]
    return [array for array in arrays if isinstance(array, Mapping) and "shape" in array]


def _array(array: Mapping[str, Any]) -> str:
    """dtype, shape, strides where they are not row-major, and the values as nested lists where they are few."""
    shape, dtype = list(array["shape"]), array.get("dtype", "")
    text = f"{dtype} {shape}"
    strides = array.get("strides")
    if strides is not None and list(strides) != _row_major(shape) and 0 not in shape:
        text += f" with strides {list(strides)}"
    values = array.get("values")
    if values is None or len(values) > MAX_SHOWN:
        return text + ": too large to show"
    return text + ": " + _cut(_nested([_number(value, dtype) for value in values], shape))


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


def _worst(got: Any, expected: Any) -> list[str]:
    lines = []
    for left, right in zip(_arrays(got), _arrays(expected), strict=False):
        wanted = {tuple(item["index"]): item.get("expected") for item in right.get("worst") or []}
        for item in (left.get("worst") or [])[:8]:
            index = tuple(item["index"])
            target = item.get("expected", wanted.get(index))
            dtype = left.get("dtype", "")
            lines.append(
                f"{list(index)}: returned {_number(item.get('got'), dtype)}, expected {_number(target, dtype)}"
            )
    return lines


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


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE else text[:MAX_LINE] + " …"


def _fenceless(text: str) -> str:
    """A candidate's own text must not close the fence it is shown in."""
    return text.replace("```", "'''")
