"""Charts of the page as inline SVG. Colours come from its style sheet by class, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

COLOURS = 8  # classes s0 … s7 of the style sheet
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 260, 58, 28, 12, 14


def interval(estimate: Mapping[str, Any], colour: str = "s0") -> Markup:
    """A share in [0, 1] as a dot on its 95% interval; empty where nothing was observed."""
    if estimate["value"] is None:
        return Markup("")
    value, low, high = (100 * estimate[key] for key in ("value", "low", "high"))
    return Markup(
        '<svg class="interval {}" viewBox="0 0 104 12" aria-hidden="true"><path class="axis" d="M2 6h100"/>'
        '<path class="bar" d="M{:.1f} 6H{:.1f}"/><circle cx="{:.1f}" cy="6" r="4"/></svg>'
    ).format(colour, low + 2, high + 2, value + 2)


def difference(estimate: Mapping[str, Any]) -> Markup:
    """A difference in [−1, 1] as a dot on its 95% interval, with a mark at 0; empty where it is undefined."""
    if estimate["value"] is None:
        return Markup("")
    halves = {key: (1 + estimate[key]) / 2 for key in ("value", "low", "high")}
    return Markup('<span class="around0">{}</span>').format(interval(halves))


def stack(counts: Sequence[tuple[str, int]]) -> Markup:
    """Counts as one bar of parts, each with its class; empty where all are 0."""
    total = sum(count for _, count in counts)
    parts, start = [], 0.0
    for name, count in counts:
        width = 100 * count / total if total else 0.0
        parts.append(Markup('<rect class="{}" x="{:.2f}" width="{:.2f}" height="10"/>').format(name, start, width))
        start += width
    bar = '<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    return Markup(bar).format(Markup("").join(parts))


def repair_curve(arms: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Share solved by round, one line an arm, with 95% intervals. Arms stand side by side within a round."""
    last = max((len(arm["solved_by_round"]) for arm in arms.values()), default=1) - 1
    step = (WIDTH - LEFT - RIGHT) / max(last + 1, 1)
    lines = [_grid(last, step)]
    for place, (name, arm) in enumerate(arms.items()):
        shift = (place + 1) / (len(arms) + 1) - 0.5
        points = [p for p in arm["solved_by_round"] if p["value"] is not None]
        lines.append(_line(name, points, step, 0.6 * step * shift, place % COLOURS))
    return Markup(
        '<svg class="curve" viewBox="0 0 {} {}" role="img" aria-label="share of episodes solved by round">{}</svg>'
    ).format(WIDTH, HEIGHT, Markup("").join(lines))


def _grid(last: int, step: float) -> Markup:
    marks = [
        Markup('<path class="axis" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">{}%</text>').format(
            LEFT, _y(share), WIDTH - RIGHT, LEFT - 6, _y(share) + 4, round(100 * share)
        )
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    marks += [
        Markup('<text x="{:.1f}" y="{}" text-anchor="middle">round {}</text>').format(_x(r, step), HEIGHT - 8, r)
        for r in range(last + 1)
    ]
    return Markup("").join(marks)


def _line(name: str, points: Sequence[Mapping[str, Any]], step: float, shift: float, colour: int) -> Markup:
    where = [(_x(p["round"], step) + shift, _y(p["value"]), p) for p in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in where)
    bars = [
        Markup('<path class="bar" d="M{:.1f} {:.1f}V{:.1f}"/>').format(x, _y(p["low"]), _y(p["high"]))
        for x, _, p in where
    ]
    dots = [
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4.5"><title>{}, round {}: {}%</title></circle>').format(
            x, y, escape(name), p["round"], round(100 * p["value"])
        )
        for x, y, p in where
    ]
    line = Markup('<path class="line" d="M{}"/>').format(path) if where else Markup("")
    return Markup('<g class="s{}">{}{}{}</g>').format(colour, line, Markup("").join(bars), Markup("").join(dots))


def _x(round_: int, step: float) -> float:
    return LEFT + step * (round_ + 0.5)


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)
