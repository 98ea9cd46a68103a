"""Kernels of known label under the default portfolio: does every bug fail, does every right kernel pass?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from oracle.corpus import Kernel
from oracle.naive import run_naive
from oracle.schema import DOMAINS
from oracle.validation.bench import Bench, Job

PART, NAIVE = "verdicts", "naive"


def jobs(kernels: Iterable[Kernel], seeds: Iterable[int], domains: Iterable[str] = tuple(DOMAINS)) -> list[Job]:
    """One job per kernel, seed and domain."""
    seeds, domains = list(seeds), list(domains)
    return [
        Job(PART, f"{kernel.suite}/{kernel.name} {domain} {seed}", partial(_verdict, kernel, seed, domain))
        for kernel in kernels
        for domain in domains
        for seed in seeds
    ]


def naive_jobs(kernels: Iterable[Kernel]) -> list[Job]:
    """One job per kernel: every naive check's verdict (their procedures fix their own seeds)."""
    return [Job(NAIVE, f"{kernel.suite}/{kernel.name}", partial(_naive, kernel)) for kernel in kernels]


def _verdict(kernel: Kernel, seed: int, domain: str, bench: Bench) -> dict[str, Any]:
    verdict = bench.judge(seed, domain).judge(bench.tasks[kernel.task], kernel.source, naive=False, minimized=False)
    failure = verdict.failure
    return {
        **about(kernel),
        "domain": domain,
        "seed": seed,
        "status": verdict.status,
        "kind": failure.kind if failure else None,
        "tier": failure.tier if failure else None,
        "message": failure.message if failure else "; ".join(verdict.notes),
        "portability": verdict.tiers.get("portability"),
        "cases": verdict.cases_run,
        "executions": verdict.executions,
    }


def _naive(kernel: Kernel, bench: Bench) -> dict[str, Any]:
    results = run_naive(bench.backend, bench.tasks[kernel.task], kernel.source)
    return {
        **about(kernel),
        "naive": {name: result.status for name, result in results.items()},
        "reasons": {name: result.reason for name, result in results.items() if result.status != "pass"},
    }


def about(kernel: Kernel) -> dict[str, Any]:
    """The columns that name a kernel in a record."""
    return {"task": kernel.task, "kernel": kernel.name, "label": kernel.label, "paper": kernel.paper}
