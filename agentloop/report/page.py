"""The HTML page of a run: one self-contained file that needs no network.

The figures stand in the page as plain HTML and SVG, readable without any script. All text from outside is escaped by
Jinja2's autoescape there, and put in place as text nodes by the script in the list and in the view of an episode. A
content security policy lets the browser run the page's own script alone and load nothing, so that even a planted
script tag that slipped through would stay text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from agentloop.comparison import MEASURES
from agentloop.records import Attempt
from agentloop.report import charts, words
from agentloop.report.console import SIMULATION, percent
from agentloop.report.contents import Contents, pack
from agentloop.store import read_config
from oracle.schema import DOMAINS

PAGE_LIMIT = 30_000_000  # bytes: what mail and browsers still take without complaint
SECTIONS = {
    "top": "What happened",
    "disagreement": "Naive checks",
    "repair": "Rounds",
    "comparison": "Comparison",
    "failures": "Failures",
    "tasks": "Tasks",
    "ability": "Ability",
    "episodes": "Episodes",
    "repeat": "Repeat",
}
SETS = {"stated": "what the prompt states", "core": "base, shapes, dtypes", "full": "all that decide"}
SCRIPTS = ("base.js", "source.js", "list.js", "episode.js", "main.js")


def render_page(run: Path, summary: dict[str, Any], attempts: Sequence[Attempt]) -> str:
    """The page as text, at most `PAGE_LIMIT` bytes where the figures leave room for it."""
    config = read_config(run)
    style, script = _asset("page.css"), "\n".join(map(_asset, SCRIPTS))
    template = _environment().get_template("page.html.j2")

    def figures(contents: Contents | None) -> str:
        text = template.render(
            summary=summary,
            config=config,
            run_path=str(run),
            style=style,
            policy=_policy(style, script),
            contents=contents,
            headline=words.headline(summary),
            examples=words.examples(attempts),
            kinds=words.kind_words(),
            repeat=words.repeat_command(run, config),
            conditions=words.conditions(config),
            comparisons=summary.get("comparison", []),
            independent=any(arm.get("independent") for arm in summary["repair"].values()),
            mended=list(dict.fromkeys(kind for arm in summary["repair"].values() for kind in arm["repair_rate"])),
            rounds=max((len(arm["solved_by_round"]) for arm in summary["repair"].values()), default=0),
            episodes=len({attempt.episode_id for attempt in attempts}),
        )
        return text.encode("utf-8", "replace").decode()  # a candidate may have spoken in lone surrogates

    taken = len(figures(None).encode()) + len(script.encode()) + 200_000  # 200 kB: tags around the blocks, notes
    contents = pack(run, config, attempts, PAGE_LIMIT - taken)
    blocks = [
        _block(f"d{number}", block.data, block.first, block.count) for number, block in enumerate(contents.blocks)
    ]
    return "".join(
        [figures(contents), _block("index", contents.index), *blocks, f"<script>{script}</script>\n</body>\n</html>\n"]
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("agentloop.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "interval": charts.interval,
        "difference": charts.difference,
        "points": words.points,
        "ranking": words.ranking,
        "profile_words": words.profile_words,
        "slug": lambda parts: re.sub(r"[^A-Za-z0-9@_.:]+", "-", "-".join(parts)),
    }
    environment.globals |= {
        "sections": SECTIONS,
        "sets": SETS,
        "episodes_link": lambda **filters: f"#/episodes?{urlencode(filters)}",
        "episode_link": lambda episode: f"#/episode/{quote(episode, safe='', errors='replace')}",
        "stack": charts.stack,
        "repair_curve": charts.repair_curve,
        "colours": charts.COLOURS,
        "headline_profile": words.headline_profile,
        "authors": words.AUTHORS,
        "measures": MEASURES,
        "simulation": SIMULATION,
        "tier_words": words.TIER_WORDS,
        "domains": DOMAINS,
    }
    return environment


def _block(name: str, data: str, first: int = 0, count: int = 0) -> str:
    """A block that the browser neither shows nor runs. `data` is base64."""
    return f'<script type="text/plain" id="{name}" data-first="{first}" data-count="{count}">{data}</script>\n'


def _asset(name: str) -> str:
    return files("agentloop.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
