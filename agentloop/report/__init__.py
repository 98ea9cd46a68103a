"""Reports of a run: `summary.json`, the console tables and the HTML page, all from one set of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentloop.files import write_json, write_whole
from agentloop.report.page import render_page
from agentloop.scoring import load_attempts, summarize


def write(run: Path, html: Path | None = None) -> tuple[dict[str, Any], Path]:
    """Compute a run's figures and write `summary.json` and the page into it, or the page alone to `html`; returns the
    figures and the page's path."""
    summary = summarize(run)
    if html is None:
        write_json(run / "summary.json", summary)
    page = html or run / "report.html"
    write_whole(page, render_page(run, summary, load_attempts(run)).encode())
    return summary, page
