"""The public procedures as published. Shapes are ours (fixed in each task before judging); all else is theirs.

kernelbench      KernelBench, src/kernelbench/eval.py since 2025-11: five trials from seed 42, `torch.rand` inputs,
                 output shape equal, `torch.allclose` with atol = rtol = 1e-4 (float32). NaN is never equal. Inputs are not
                 cloned and the reference runs first.
kernelbench_v0   the same before: five trials, `torch.randn`, atol = rtol = 1e-2.
tritonbench      TritonBench, channel T: its example calls once; passes whatever does not raise, because 165 of 166 tests
                 print nothing and the comparison is of stdout. Example calls here are ours, from the signature.
gpuemu           the "benchmark" column of arXiv 2606.20128 as it would be measured: one fixed shape, one draw of
                 U[-10, 10], allclose with atol 1e-5, rtol 1e-2.
geak             GEAK's result comparison: seed 42, fixed shape, allclose with the library defaults atol 1e-3, rtol 1e-1.
backendbench     BackendBench: assert_close with 1e-2/1e-2 for every dtype, NaN equal to NaN, dtype and shape checked,
                 over a small per-operator set of calls (ours: one per form of the signature, as OpInfo has).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """One public check. `rule` is "allclose", "assert_close" or "runs"; `draw` "rand", "randn" or "uniform10"; `calls`
    "fixed" (base form at the naive shape) or "examples" (small calls from the signature)."""

    name: str
    trials: int
    draw: str
    rule: str
    atol: float = 0.0
    rtol: float = 0.0
    calls: str = "fixed"


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("kernelbench", 5, "rand", "allclose", 1e-4, 1e-4),
        Profile("kernelbench_v0", 5, "randn", "allclose", 1e-2, 1e-2),
        Profile("tritonbench", 1, "randn", "runs", calls="examples"),
        Profile("gpuemu", 1, "uniform10", "allclose", 1e-5, 1e-2),
        Profile("geak", 1, "randn", "allclose", 1e-3, 1e-1),
        Profile("backendbench", 1, "randn", "assert_close", 1e-2, 1e-2, calls="examples"),
    )
}
