"""Intervals and estimators against libraries and hand-counted values."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from agentloop.statistics import mean_over_tasks, pass_at_k, share, wilson


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels_wilson(counts: tuple[int, int]):
    successes, n = counts
    low, high = proportion_confint(successes, n, method="wilson")
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-9)


def test_wilson_refuses_what_is_no_proportion():
    for successes, n in ((1, 0), (3, 2), (-1, 5)):
        with pytest.raises(ValueError, match="wilson"):
            wilson(successes, n)


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_at_k_counts_the_subsets_that_hold_a_correct_sample(counts: tuple[int, int, int]):
    correct, n, k = counts
    subsets = list(itertools.combinations(range(n), k))
    hits = sum(any(sample < correct for sample in subset) for subset in subsets)
    assert pass_at_k(n, correct, k) == pytest.approx(hits / len(subsets))


def test_pass_at_k_is_undefined_below_k_samples():
    assert pass_at_k(2, 1, 3) is None


def test_a_share_with_one_sample_a_task_has_the_wilson_interval():
    estimate = share({f"t{i}": [i < 5] for i in range(8)})
    assert (estimate.value, estimate.n, estimate.tasks, estimate.method) == (5 / 8, 8, 8, "wilson")
    assert (estimate.low, estimate.high) == wilson(5, 8)


def test_samples_of_one_task_do_not_count_as_independent():
    """40 tasks whose ten samples agree carry the information of 40, not 400."""
    clustered = share({f"t{i}": [i % 2 == 0] * 10 for i in range(40)})
    assert clustered.low is not None
    assert clustered.high is not None
    width = clustered.high - clustered.low
    low, high = wilson(20, 40)
    assert width == pytest.approx(high - low, rel=0.15)


def test_all_or_none_still_has_an_interval():
    none = share({f"t{i}": [False, False] for i in range(10)})
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(wilson(0, 10)[1])
    every = mean_over_tasks([1.0] * 12)
    assert (every.value, every.high) == (1.0, 1.0)
    assert every.low == pytest.approx(wilson(12, 12)[0])


def test_nothing_observed_has_no_value():
    assert share({}).value is None
    assert share({"t": []}).value is None
    assert str(share({})) == "–"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_holds_its_value_and_stays_in_range(values: list[float]):
    estimate = mean_over_tasks(values)
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert -1e-9 <= estimate.low <= estimate.high <= 1 + 1e-9
    assert not math.isnan(estimate.low)
