"""Naive checks: public benchmarks' correctness procedures, honestly measured, one profile each."""

from oracle.naive.procedure import first_calls, run_naive, run_profile
from oracle.naive.profiles import PROFILES, Profile

__all__ = ["PROFILES", "Profile", "first_calls", "run_naive", "run_profile"]
