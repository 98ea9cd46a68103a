"""A counterexample in lines of plain words: what `judge`, `replay` and `show` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloop.failures import counterexample_view
from oracle.schema import Task


def counterexample_lines(example: Mapping[str, Any], task: Task | None = None) -> Iterator[str]:
    """The case (sizes, dtype, layout, values), each input, what came back and what should have, the errors, the pattern.

    `example` is a `Counterexample.to_json()`. The whole of it, exact, is in `--json` and in its token.
    """
    view = counterexample_view(example, task)
    drawn = (example.get("case") or {}).get("values") is None
    parts = [
        f"form {view['form']}" if view["form"] else "",
        f"sizes {view['dims']}",
        view["dtype"],
        f"layout {view['layout']}",
        f"values {view['regime']}" if drawn else "values shrunk",
        f"keywords {view['keywords']}",
        f"tier {view['tier']}",
    ]
    yield f"case: {'; '.join(filter(None, parts))}"
    for name, key in (("input", "inputs"), ("got", "got"), ("expected", "expected"), ("worst element", "worst")):
        for line in view[key]:
            yield f"{name}: {line.replace('`', '')}"
    if view["errors"]:
        yield f"errors: {view['errors']}"
    if view["diagnosis"]:
        yield f"pattern: {view['diagnosis']}"
