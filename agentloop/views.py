"""A task in plain words and short lines: what the templates of a first request may use."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from oracle.schema import Form, Keyword, Output, Task, Tensor
from oracle.values import REGIMES

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
        frozenset({"zeros", "signed_zeros", "equal", "constant_rows", "negative", "far_negative", "lowest"})
        | frozenset({"sorted_rows", "sorted", "ties"}),
        "all zero, all equal, all negative, sorted, with ties",
    ),
    (
        frozenset({"nonfinite", "one_nan", "one_inf", "infinite_rows"}),
        "NaN, inf and -inf anywhere, single or filling rows",
    ),
    (frozenset({"masked_rows"}), "masks with rows all False or all True"),
    (frozenset({"all_ignored", "none_ignored"}), "indices that are all to be ignored, or none of them"),
    (frozenset({"hidden_rows", "hidden_elements"}), "NaN, inf and -inf where they are ignored or masked out"),
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
