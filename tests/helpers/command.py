"""The command line as a user types it, over a real server and run folder; only the judge is the quick stand-in.

Use `main` in a test's own process (`stand_in` replaces the judge there) and `sitting` as a process to be killed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from agentloop import cli, session
from agentloop.content import load_tasks
from tests.helpers.sitting import StandInBackend, StandInJudge

load_tasks()  # a forkserver that preloads this module spares each sitting the imports
READY = "ready"  # the first line of a sitting's output


def stand_in(patch: pytest.MonkeyPatch, judge_seconds: float = 0.0) -> None:
    """Put the stand-in judge into this process's command line."""
    patch.setattr(session, "open_backend", lambda *_, **__: StandInBackend())
    patch.setattr(session, "open_judge", lambda *_, **__: StandInJudge(judge_seconds))


def main(*arguments: str) -> int:
    """Exit code of a command run in this process."""
    before, sys.argv = sys.argv, ["agentloop", *arguments]
    try:
        cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    return 0


def sitting(arguments: list[str], output: Path, judge_seconds: float | None, clock: float) -> None:
    """The process: output to a file, the wall clock off by `clock` seconds from half a second on. Without
    `judge_seconds` the real judge judges."""
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    if judge_seconds is not None:
        stand_in(pytest.MonkeyPatch(), judge_seconds)
    real, started = time.time, time.monotonic()
    time.time = lambda: real() + (clock if time.monotonic() - started > 0.5 else 0.0)
    print(READY, flush=True)
    sys.exit(main(*arguments))
