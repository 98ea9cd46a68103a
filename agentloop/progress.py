"""What a run shows while it goes: a live line on a terminal, one plain line per attempt elsewhere."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from agentloop import Retry
from agentloop.records import Attempt
from oracle.verdict import FAIL, PASS

LOOK = {"pass": "green", "fail": "red", "unjudged": "yellow"}


def announce(what: str) -> None:
    """Say on stderr what takes the next seconds."""
    Console(stderr=True).print(f"{what} …", style="dim", markup=False, highlight=False, soft_wrap=True)


class RunProgress:
    """Counts and shows. A context manager; safe to use for one run only."""

    def __init__(self, episodes: int, console: Console | None = None, what: str = "episodes") -> None:
        """`what` the bar counts to `episodes`."""
        self.console = console or Console(stderr=True)
        self.episodes = episodes
        self.counts: Counter[str] = Counter()
        self._live = self.console.is_terminal
        self._bar = Progress(
            TextColumn(what),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self._live,
        )
        self._line = self._bar.add_task("episodes", total=episodes, note="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def attempt(self, attempt: Attempt) -> None:
        """An attempt was judged and recorded."""
        self.counts["attempts"] += 1
        self.counts[attempt.status_stated] += 1
        fooled = [name for name, result in attempt.naive.items() if result["status"] == PASS]
        if attempt.status_stated == FAIL and fooled:
            self.counts["illusions"] += 1
        failure = attempt.score.failure if attempt.score else None
        parts = [
            f"[{self.counts['ended'] + bool(attempt.ends)}/{self.episodes}]",
            f"{attempt.task} {attempt.model} {attempt.prompt_strategy} {attempt.feedback}",
            f"sample {attempt.sample} round {attempt.round}:",
            attempt.status_stated,
            f"{failure['kind']} in {failure['tier']}" if failure else "",
            f"(naive pass: {', '.join(fooled)})" if fooled and attempt.status_stated == FAIL else "",
        ]
        self.say(" ".join(filter(None, parts)), LOOK[attempt.status_stated])

    def ended(self) -> None:
        """An episode ended (or was already complete)."""
        self.counts["ended"] += 1
        self._bar.update(self._line, completed=self.counts["ended"], note=self._note())

    def retry(self, retry: Retry) -> None:
        self.counts["retries"] += 1
        self.say(f"again in {retry.waits:.1f} s: {retry.reason}", "yellow")

    def fault(self, attempt_id: str, message: str) -> None:
        """An attempt is owed."""
        self.counts["owed"] += 1
        self.say(f"owed: {attempt_id}: {message}", "yellow")

    def say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        self._bar.update(self._line, note=self._note())

    def _note(self) -> str:
        names = ("attempts", PASS, FAIL, "unjudged", "illusions", "retries", "owed")
        return "  ".join(f"{name} {self.counts[name]}" for name in names if self.counts[name])
