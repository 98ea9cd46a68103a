"""The HTML page of a run: one self-contained file, no network, no script needed to read it.

All text of models is escaped by Jinja2's autoescape; source is highlighted by Pygments, which escapes too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from agentloop.records import Attempt
from agentloop.report.console import SIMULATION, percent

SOURCE_SHOWN = 20_000  # characters of a candidate that the page shows
EPISODES_SHOWN = 400  # the page of a larger run leaves later episodes to `agentloop show`


def render_page(run: Path, summary: dict[str, Any], attempts: Sequence[Attempt]) -> str:
    """The page as text."""
    environment = Environment(
        loader=PackageLoader("agentloop.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    formatter = HtmlFormatter(nowrap=False)
    episodes = _episodes(run, attempts)
    return environment.get_template("page.html.j2").render(
        summary=summary,
        simulation=SIMULATION,
        style=HtmlFormatter(style="default").get_style_defs(".highlight"),
        dark_style=HtmlFormatter(style="monokai").get_style_defs(".highlight"),
        episodes=episodes[:EPISODES_SHOWN],
        left_out=max(0, len(episodes) - EPISODES_SHOWN),
        paint=lambda source: highlight(source, PythonLexer(), formatter),
        run_path=str(run),
    )


def _episodes(run: Path, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    grouped: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        grouped[attempt.episode_id].append(attempt)
    return [
        {"id": episode, "rounds": [_round(run, attempt) for attempt in sorted(group, key=lambda a: a.round)]}
        for episode, group in sorted(grouped.items())
    ]


def _round(run: Path, attempt: Attempt) -> dict[str, Any]:
    """What the page shows of an attempt; a file that is gone is shown as absent, never an error."""
    source = _text(run / "candidates" / f"{attempt.candidate_id}.py") if attempt.candidate_id else ""
    response = _json(run / "responses" / f"{attempt.response_id}.json") if attempt.response_id else {}
    example = attempt.score.counterexample if attempt.score else None
    return {
        "attempt": attempt,
        "failure": attempt.score.failure if attempt.score else None,
        "source": source[:SOURCE_SHOWN],
        "cut": max(0, len(source) - SOURCE_SHOWN),
        "messages": response.get("messages") or [],
        "answer": response.get("text") or "",
        "example": example,
        "shown": {key: json.dumps(example.get(key)) for key in ("case", "inputs", "got", "expected")}
        if example
        else {},
        "file": f"{run}/candidates/{attempt.candidate_id}.py",
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
