"""Verdicts: what the oracle says of one candidate, and the closed list of failure kinds."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any

from oracle.schema import DOMAINS, TIERS

PASS, FAIL, UNJUDGED = "pass", "fail", "unjudged"

FAILURE_KINDS = (
    "no_code",
    "syntax_error",
    "import_error",
    "missing_entry_point",
    "compile_error",
    "launch_error",
    "timeout",
    "memory_limit",
    "crashed",
    "wrong_structure",
    "wrong_shape",
    "wrong_dtype",
    "numerical_mismatch",
    "nonfinite_mismatch",
    "out_of_bounds",
    "unwritten_output",
    "input_mutated",
    "aliased_output",
    "nondeterministic",
    "order_dependent",
    "late_write",
    "undefined_lanes",
    "stale_result",
    "no_kernel_launch",
    "unused_kernel",
    "host_compute",
    "tampering",
)

# Of a silent failure no error tells: wrong numbers, a wrong dtype, memory touched beside a tensor, which a GPU allows. These
# kinds raise or are refused.
LOUD_KINDS = frozenset(
    {
        "no_code",
        "syntax_error",
        "import_error",
        "missing_entry_point",
        "compile_error",
        "launch_error",
        "timeout",
        "memory_limit",
        "crashed",
        "tampering",
    }
)


@dataclass(frozen=True)
class Failure:
    """Why a candidate failed. `message` is one line; `detail` may hold a traceback of the candidate's own code."""

    kind: str
    tier: str
    message: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.kind not in FAILURE_KINDS:
            raise ValueError(f"unknown failure kind {self.kind!r}")

    @property
    def loud(self) -> bool:
        return self.kind in LOUD_KINDS

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tier": self.tier, "loud": self.loud, "message": self.message, "detail": self.detail}


@dataclass(frozen=True)
class Counterexample:
    """A failing case, shrunk. `got` and `expected` hold at most a few hundred values around the worst elements:
    {"shape", "dtype", "values" (flat, or null where too large), "worst": [{"index", "got", "expected"}…]}."""

    token: str
    case: dict[str, Any]
    inputs: dict[str, Any]
    got: Any
    expected: Any
    stats: dict[str, Any]
    diagnosis: str | None
    executions: int = 0
    original: dict[str, Any] | None = None  # the case as found, with its got/expected/stats

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class NaiveResult:
    """One naive check's own verdict. `status` pass, fail or unjudged; `reason` one line."""

    status: str
    reason: str = ""


@dataclass
class Verdict:
    """The oracle's judgement of one candidate on one task."""

    task: str
    candidate: str  # blake2b digest of the source
    backend: str
    domain: str
    seed: int
    tolerance: str
    tiers: dict[str, str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)  # first failure of each failing tier
    cases_run: int = 0
    cases_failed: dict[str, int] = field(default_factory=dict)  # per tier
    naive: dict[str, NaiveResult] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    notes: list[str] = field(default_factory=list)
    not_exercised: list[str] = field(default_factory=list)
    isolation: list[str] = field(default_factory=list)
    seconds: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)  # seconds by activity (`oracle.clock`)
    within: dict[str, float] = field(default_factory=dict)  # the same with all that was inside each
    executions: int = 0
    input_digests: list[str] = field(default_factory=list)
    sanitizer: dict[str, Any] | None = None  # `oracle.sanitizer.Looked`, where the candidate was in the sample

    def status_over(self, tiers: tuple[str, ...]) -> str:
        """Status over the given tiers: fail if one fails, else unjudged if one is unjudged, else pass."""
        seen = [self.tiers[tier] for tier in tiers if tier in self.tiers]
        if FAIL in seen:
            return FAIL
        return UNJUDGED if UNJUDGED in seen or not seen else PASS

    @property
    def status(self) -> str:
        return self.status_over(DOMAINS[self.domain])

    @property
    def failure(self) -> Failure | None:
        """The failure of the first failing tier of the domain, in the order of `TIERS`."""
        for tier in TIERS:
            if tier in DOMAINS[self.domain] and tier in self.failures:
                return self.failures[tier]
        return None

    @property
    def illusion(self) -> dict[str, bool]:
        return {name: result.status == PASS and self.status == FAIL for name, result in self.naive.items()}

    def to_json(self) -> dict[str, Any]:
        failure = self.failure
        return {
            "task": self.task,
            "candidate": self.candidate,
            "backend": self.backend,
            "domain": self.domain,
            "seed": self.seed,
            "tolerance": self.tolerance,
            "status": self.status,
            "failure": failure.to_json() if failure else None,
            "tiers": self.tiers,
            "failures": {tier: failure.to_json() for tier, failure in self.failures.items()},
            "cases_run": self.cases_run,
            "cases_failed": self.cases_failed,
            "naive": {name: asdict(result) for name, result in self.naive.items()},
            "illusion": self.illusion,
            "counterexample": self.counterexample.to_json() if self.counterexample else None,
            "notes": self.notes,
            "not_exercised": self.not_exercised,
            "isolation": self.isolation,
            "seconds": round(self.seconds, 3),
            "executions": self.executions,
            "sanitizer": self.sanitizer,
        }


def candidate_id(source: str) -> str:
    """Name of a candidate: the digest of its source."""
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
