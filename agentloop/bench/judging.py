"""Where judging time goes, and how long a candidate takes: right ones, and wrong ones until decided and minimized."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agentloop.bench import Figure, middle
from agentloop.bench.candidates import PRODUCT, ROW, Sample
from oracle.judge import Judge
from oracle.verdict import FAIL, PASS, Verdict
from oracle.worker.protocol import Backend

PART = "judging"
NEEDED = ("execute", "reference", "compile_gate")  # all else is overhead


def measure(backend: Backend, right: Sequence[Sample], wrong: Sequence[Sample]) -> list[Figure]:
    """One after the other: core domain, every dtype, every naive profile, one cache of references."""
    judge = Judge(backend, domain="core")
    passed = [(sample, judge.judge(sample.task, sample.source)) for sample in right]
    failed = [judge.judge(sample.task, sample.source) for sample in wrong]
    failed = [verdict for verdict in failed if verdict.status == FAIL]
    by_group = {
        group: [verdict for sample, verdict in passed if sample.group == group and verdict.status == PASS]
        for group in (ROW, PRODUCT)
    }
    minimized = [verdict.within["minimize"] for verdict in failed if "minimize" in verdict.within]
    decided = [verdict.seconds - verdict.within.get("minimize", 0.0) for verdict in failed]
    rights = [verdict for verdicts in by_group.values() for verdict in verdicts]
    return [
        _seconds("right, elementwise or row-wise", [v.seconds for v in by_group[ROW]], 6.0),
        _seconds("right, matmul and attention", [v.seconds for v in by_group[PRODUCT]], 20.0),
        _seconds("wrong, until decided", decided, 1.0),
        _seconds("wrong, to minimize it", minimized, 3.0),
        Figure(PART, "overhead, right", overhead(rights), "%", 20.0, note=f"of all time of {len(rights)} candidates"),
        Figure(PART, "overhead, wrong", overhead(failed), "%", note=f"of all time of {len(failed)} candidates"),
        *(Figure(PART, f"share, right: {name}", value, "%") for name, value in shares(rights).items()),
        *(Figure(PART, f"share, wrong: {name}", value, "%") for name, value in shares(failed).items()),
    ]


def overhead(verdicts: Sequence[Verdict]) -> float:
    """Percent of the time that is neither candidate's code, reference nor compiler."""
    return 100.0 - sum(shares(verdicts).get(activity, 0.0) for activity in NEEDED)


def shares(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Percent of all judging time by activity (`oracle.clock`), the largest first; `judge` is what none of them took."""
    total = sum(verdict.seconds for verdict in verdicts)
    spent: defaultdict[str, float] = defaultdict(float)
    for verdict in verdicts:
        for name, seconds in verdict.spent.items():
            spent[name] += seconds
    spent["judge"] = total - sum(spent.values())
    return {name: 100.0 * spent[name] / total for name in sorted(spent, key=lambda name: -spent[name])}


def _seconds(name: str, values: list[float], target: float) -> Figure:
    note = f"median of {len(values)}, longest {max(values, default=0.0):.1f} s"
    return Figure(PART, name, middle(values), "s", target, note=note)
