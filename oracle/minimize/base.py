"""The contract of a shrinker, and the search that drives it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator
from typing import TypeAlias

from oracle.case import Case
from oracle.errors import OracleError
from oracle.schema import Task

Candidates: TypeAlias = Generator[Case, bool, None]


class Shrinker:
    """Proposes simpler cases along one axis."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def candidates(self, case: Case) -> Candidates:
        """Yield cases simpler than the simplest that failed so far (`case` at first); each `yield` answers whether the
        proposed case fails too, and has so become the simplest. A finite number, in an order fixed by `case` alone."""
        raise NotImplementedError


class Search:
    """The simplest failing case so far, how many executions are left and until when. No case is executed twice."""

    def __init__(
        self, case: Case, failing: Callable[[Case], object], budget: int, seconds: float | None = None
    ) -> None:
        self.best, self.failing, self.left = case, failing, budget
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.seen: dict[str, bool] = {}

    def start(self) -> bool:
        """Whether the case to shrink fails; our own trouble on it is raised, not taken for a pass."""
        self.left -= 1
        self.seen[_key(self.best)] = bool(self.failing(self.best))
        return self.seen[_key(self.best)]

    def run(self, shrinker: Shrinker, reserved: int = 0) -> None:
        """Offer all candidates of a shrinker, or as many as the budget allows; `reserved` executions are left over."""
        steps = shrinker.candidates(self.best)
        fails = None
        while self.left > reserved and time.monotonic() < self.deadline:
            try:
                case = next(steps) if fails is None else steps.send(fails)
            except StopIteration:
                return
            fails = self._fails(case)
            if fails:
                self.best = case

    def _fails(self, case: Case) -> bool:
        key = _key(case)
        if key not in self.seen:
            self.left -= 1
            try:
                self.seen[key] = bool(self.failing(case))
            except OracleError:  # outside what the task allows
                self.seen[key] = False
        return self.seen[key]


def _key(case: Case) -> str:
    return json.dumps(case.to_json(), sort_keys=True)
