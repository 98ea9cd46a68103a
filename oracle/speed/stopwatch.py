"""The judge's side of timing: a candidate in a contained process of its own, beside eager PyTorch, one at a time.

First the call is judged as any other; then it is repeated in chunks (`oracle.worker.repeating`), and the last output of
each is judged as well, on inputs that it never saw. The process's clocks are held against each other, against eager's and
against ours.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from oracle.errors import UsageError
from oracle.inputs import Inputs, build
from oracle.judge import ALWAYS_FORBIDDEN, Judge
from oracle.reference import ReferenceCache
from oracle.runner import Trial
from oracle.schema import Task
from oracle.speed.baseline import Baseline
from oracle.speed.figures import Speed, beside, spread, suspicions
from oracle.speed.floor import floor_us, least_traffic
from oracle.speed.shape import counted, schedule, timed_case

HELD_BYTES = 2 << 30  # of one task's references
_one_at_a_time = threading.Lock()


def check_backend(name: str) -> None:
    """UsageError where candidates cannot be timed. Of "auto" only its backend can tell, once it is open."""
    if name not in ("cuda", "auto"):
        raise UsageError(
            f"--speed needs --backend cuda: on the {name} backend a kernel's time says nothing; leave it out"
        )


class Stopwatch:
    """Times candidates of one judge. What a task needs is kept until another task is asked for: ask task by task."""

    def __init__(self, judge: Judge) -> None:
        """UsageError on a backend without a GPU."""
        check_backend(judge.backend.name)
        self.judge = judge
        self._task: _Timed | None = None

    def time(self, task: Task, source: str) -> Speed:
        """One candidate; waits while another is timed. Raises InfrastructureError for our own trouble."""
        with _one_at_a_time:
            if self._task is None or self._task.task is not task:
                self._task = _Timed(task, self.judge.seed)
            return self._task.time(self.judge, source)


class _Timed:
    """A task with its timing inputs, references and baseline."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task = task
        self.inputs: Inputs = build(task, timed_case(task, seed))
        self.references = ReferenceCache(HELD_BYTES)
        self.baseline = Baseline(self.inputs)
        traffic = least_traffic(self.inputs, self.references.get(task, self.inputs))
        self.floor = floor_us(traffic, self.baseline.operations, self.baseline.peaks)

    def time(self, judge: Judge, source: str) -> Speed:
        chunks = schedule()
        measured = self.baseline.measure([offset for chunk in chunks for offset in chunk])
        eager_us, eager_host = (counted(column) for column in measured)
        trials: list[Trial] = []
        with judge.runner(self.task, source, ALWAYS_FORBIDDEN, self.references) as runner:
            trials.append(runner.run(self.inputs.case))
            for offsets in chunks:
                if trials[-1].outcome.status == "returned":
                    trials.append(runner.repeat(self.inputs, offsets))
        times = [trial.outcome.times for trial in trials if trial.outcome.times]
        flags = [
            (trial.failure.kind, trial.failure.message) for trial in trials if trial.failure is not None
        ] or _unjudged(trials)
        event_us = [value for each in times for value in counted(each.event_us)]
        if len(times) < len(chunks) or not event_us:
            return self._speed(eager_us, [], flags)
        host_us = [value for each in times for value in counted(each.host_us)]
        if any(0 in each.launches for each in times):
            flags.append(("no_kernel_launch", "a timed call launched no Triton kernel"))
        flags += suspicions(event_us, host_us, beside(eager_us, eager_host), times, self.floor)
        return self._speed(eager_us, event_us, flags)

    def _speed(self, eager_us: Sequence[float], event_us: Sequence[float], flags: list[tuple[str, str]]) -> Speed:
        eager, low, high = spread(eager_us)
        median, own_low, own_high = spread(event_us) if event_us else (None, None, None)
        return Speed(
            median_us=median,
            p10_us=own_low,
            p90_us=own_high,
            eager_us=eager,
            eager_p10_us=low,
            eager_p90_us=high,
            speedup=eager / median if median else None,
            floor_us=self.floor,
            flags=list(dict.fromkeys(kind for kind, _ in flags)),
            message=flags[0][1] if flags else "",
            shape=self.inputs.case.dims,
            dtype=self.inputs.case.dtype,
            repetitions=len(event_us),
            gpu=self.baseline.peaks.gpu,
        )


def _unjudged(trials: list[Trial]) -> list[tuple[str, str]]:
    return [("unjudged", trial.unjudged) for trial in trials if trial.unjudged][:1]
