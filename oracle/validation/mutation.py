"""Mutants of right kernels under the oracle and the naive checks: which of them does each let pass?

Mutants that raise on the base case are excluded, for any check sees those; so are mutants that the compiler refuses
(`oracle.compile_gate`). Mutants fall by the digest of their text into a half to tune the oracle on and a half to
score it with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from oracle.corpus import CONTROL, Kernel, kernels
from oracle.corpus.mutate import OPERATORS, Mutant, mutants
from oracle.inputs import build
from oracle.portfolio import portfolio
from oracle.validation.bench import Bench, Job
from oracle.verdict import FAIL, PASS, Verdict

PART = "mutation"
RAISES, REFUSED = "raises on the base case", "does not compile"  # why a mutant does not count


def sample(half: str, count: int | None) -> list[tuple[Kernel, Mutant]]:
    """At most `count` mutants per mutation operator of one half (None: all), those with the smallest digests; in order
    of their kernels, so that neighbours share references."""
    found: dict[str, dict[str, tuple[Kernel, Mutant]]] = defaultdict(dict)
    for kernel in kernels(label=CONTROL):
        for mutant in mutants(kernel.source):
            if mutant.half == half:
                found[mutant.operator].setdefault(mutant.digest, (kernel, mutant))
    chosen = [pair for name in OPERATORS for _, pair in sorted(found[name].items())[:count]]
    return sorted(chosen, key=lambda pair: (pair[0].task, pair[0].name, pair[1].line, pair[1].digest))


def jobs(half: str, count: int | None) -> list[Job]:
    """One job per sampled mutant."""
    return [Job(PART, mutant.digest, partial(_judged, kernel, mutant)) for kernel, mutant in sample(half, count)]


def _judged(kernel: Kernel, mutant: Mutant, bench: Bench) -> dict[str, Any]:
    verdict = bench.judge(0, "full").judge(bench.tasks[kernel.task], mutant.source, minimized=False)
    base, failure = verdict.failures.get("base"), verdict.failure
    return {
        "task": kernel.task,
        "kernel": kernel.name,
        "operator": mutant.operator,
        "half": mutant.half,
        "line": mutant.line,
        "description": mutant.description,
        "excluded": RAISES if base is not None and base.loud else _refusal(bench, kernel, mutant, verdict),
        "status": verdict.status,
        "portability": verdict.tiers.get("portability"),
        "kind": failure.kind if failure else None,
        "tier": failure.tier if failure else None,
        "message": failure.message if failure else "; ".join(verdict.notes),
        "naive": {name: result.status for name, result in verdict.naive.items()},
    }


def _refusal(bench: Bench, kernel: Kernel, mutant: Mutant, verdict: Verdict) -> str | None:
    """REFUSED, or None. The judge asks the compiler about what passes; of the others it is asked here, on the base case."""
    if verdict.failure is None:
        return None
    if verdict.failure.kind == "compile_error":
        return REFUSED
    task = bench.tasks[kernel.task]
    with bench.runner(task.id, mutant.source) as runner:
        return REFUSED if runner.ask_compiler(build(task, portfolio(task)[0])).refusal else None


def missed(record: Mapping[str, Any]) -> bool:
    """Whether the oracle does not fail a mutant that counts."""
    return not record["excluded"] and record["status"] != FAIL


def headline(record: Mapping[str, Any]) -> bool:
    """Whether a mutant counts and the check of KernelBench passes it."""
    return not record["excluded"] and record["naive"].get("kernelbench") == PASS
