"""Intervals, estimators and tests against libraries, hand-counted values and simulated data of a known truth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from agentloop import statistics
from agentloop.statistics import (
    averaged,
    bca,
    effective_wilson,
    holm,
    mean_difference,
    mean_over_tasks,
    pass_at_k,
    share,
    sign_flip,
    wilson,
)
from benchmarks import coverage

fractions = st.builds(Fraction, st.integers(-3, 3), st.just(3))


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
    assert mean_over_tasks([float(i < 5) for i in range(8)]) == estimate


@pytest.mark.parametrize("seed", range(5))
def test_the_bootstrap_is_scipys(seed: int):
    """Unequal numbers of samples a task; both are random, so they agree to the error of the resampling."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 45)
    hits = rng.binomial(counts, rng.beta(1, 2, 45)).astype(float)

    def ratio(top: np.ndarray, bottom: np.ndarray, axis: int = -1) -> np.ndarray:
        return top.sum(axis) / bottom.sum(axis)

    data = (hits, counts.astype(float))
    theirs = stats.bootstrap(data, ratio, paired=True, n_resamples=8000, method="BCa", rng=rng).confidence_interval
    assert bca(hits, counts) == pytest.approx((theirs.low, theirs.high), abs=0.012)


def test_samples_of_one_task_do_not_count_as_independent():
    """40 tasks whose ten samples agree carry the information of 40, not 400."""
    clustered = share({f"t{i}": [i % 2 == 0] * 10 for i in range(40)})
    assert "bootstrap" in clustered.method
    assert clustered.low is not None
    assert clustered.high is not None
    low, high = wilson(20, 40)
    assert clustered.high - clustered.low == pytest.approx(high - low, rel=0.15)


def test_a_task_with_more_samples_weighs_more_in_a_share_and_not_in_an_average():
    by_task = {"a": [True] * 8, "b": [False] * 2}
    assert (share(by_task).value, averaged(by_task).value, averaged(by_task).n) == (0.8, 0.5, 10)
    alike = {"a": [True, False], "b": [False, True], "c": [True, True]}
    assert averaged(alike).to_json() == share(alike).to_json()


@pytest.mark.parametrize("tasks", [1, 2, 10, 45])
def test_all_or_none_still_has_an_interval_as_wide_as_the_tasks_alone_allow(tasks: int):
    none = share({f"t{i}": [False, False] for i in range(tasks)})
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high is not None
    assert wilson(0, tasks)[1] <= none.high < 1
    every = share({f"t{i}": [True, True] for i in range(tasks)})
    assert every.low == pytest.approx(1 - none.high)


def test_a_few_partly_solved_tasks_do_not_give_a_narrow_interval():
    """One right answer of 450 says no more than one task of 45 that is solved rarely."""
    estimate = share({f"t{i}": [i == 0 and j == 0 for j in range(10)] for i in range(45)})
    assert estimate.high is not None
    assert estimate.high > 0.05
    assert effective_wilson(np.eye(1, 45)[0], np.full(45, 10))[1] == estimate.high


def test_nothing_observed_has_no_value():
    assert share({}).value is None
    assert share({"t": []}).value is None
    assert str(share({})) == "–"
    assert mean_difference([]).value is None
    assert not share({}).few_tasks


def test_below_thirty_tasks_a_figure_says_so():
    assert [share({str(t): [True] for t in range(n)}).to_json()["few_tasks"] for n in (29, 30)] == [True, False]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_an_interval_holds_its_value_and_stays_in_range(values: list[float]):
    estimate = mean_over_tasks(values)
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert -1e-9 <= estimate.low <= estimate.value + 1e-9
    assert estimate.value - 1e-9 <= estimate.high <= 1 + 1e-9


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_failures_have_the_mirrored_interval_of_successes(hits: list[int]):
    low, high = effective_wilson(np.array(hits), np.full(len(hits), 3))
    assert effective_wilson(3 - np.array(hits), np.full(len(hits), 3)) == pytest.approx((1 - high, 1 - low))


@given(st.lists(fractions, min_size=2, max_size=9))
@settings(max_examples=40, deadline=None)
def test_sign_flips_are_scipys_exact_permutation_test(differences: list[Fraction]):
    values = [float(difference * 3) for difference in differences]  # whole numbers: no rounding in their comparison
    theirs = stats.permutation_test(
        (values,), lambda x, axis: x.sum(axis), permutation_type="samples", n_resamples=2**9, vectorized=True
    )
    assert sign_flip(differences) == pytest.approx(theirs.pvalue)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 30))
def test_with_one_sample_a_task_sign_flips_are_the_exact_mcnemar_test(better: int, worse: int, tied: int):
    differences = [Fraction(1)] * better + [Fraction(-1)] * worse + [Fraction(0)] * tied
    theirs = mcnemar([[tied, better], [worse, 0]], exact=True).pvalue
    assert sign_flip(differences) == pytest.approx(theirs)


def test_many_random_flips_stand_in_where_the_exact_test_is_too_large(monkeypatch: pytest.MonkeyPatch):
    differences = [Fraction(k, 7) for k in (5, -2, 3, 4, -6, 1, 2, 7, 5, -1)]
    exact = sign_flip(differences)
    monkeypatch.setattr(statistics, "EXACT_STEPS", 0)
    drawn = sign_flip(differences)
    assert drawn != exact
    assert drawn == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(
    "p_values", [[0.5], [0.01, 0.04, 0.03], [0.2, 0.2, 0.0, 1.0], [0.03] * 5, [0.001, 0.9, 0.01, 0.02]]
)
def test_holm_is_statsmodels_holm(p_values: list[float]):
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_adjusts_upward_only(p_values: list[float]):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(p_values)] == sorted(adjusted)


def test_no_comparison_needs_no_adjustment():
    assert holm([]) == []


@given(st.lists(fractions, min_size=1, max_size=60))
def test_a_difference_read_the_other_way_is_its_mirror(differences: list[Fraction]):
    one, two = mean_difference(differences), mean_difference([-difference for difference in differences])
    assert one.value is not None
    assert one.low is not None
    assert two.high is not None
    assert (one.value, one.low) == pytest.approx((-(two.value or 0.0), -two.high))
    assert -1 <= one.low <= one.value


def test_the_interval_of_a_difference_nears_students():
    values = list(np.random.default_rng(0).choice([-1.0, -0.5, 0.0, 0.5, 1.0], 400))
    estimate = mean_difference(values)
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    assert (estimate.low, estimate.high) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_tasks_that_all_tie_leave_a_difference_open():
    estimate = mean_difference([Fraction(0)] * 15)
    assert estimate.value == 0.0
    assert estimate.high is not None
    assert estimate.high > 0.1
    assert sign_flip([Fraction(0)] * 15) == 1.0


def chosen(tasks: int, *wanted: str) -> list[coverage.Setting]:
    found = [*coverage.share_settings(tasks), *coverage.pass_settings(tasks), *coverage.difference_settings(tasks)]
    return [setting for setting in found if setting.name in wanted]


@pytest.mark.parametrize(
    "name",
    [
        "mean 0.5, alike 0.5, 5 to 5 samples",
        "mean 0.05, alike 0.5, 10 to 10 samples",
        "mean 0.9, alike 0.3, 1 to 5 samples",
        "pass@2 of 5, mean 0.3, alike 0.3",
        "means 0.9 and 0.97, alike 0.9, 1 samples",
        "means 0.05 and 0.05, alike 0.5, 5 samples",
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(name: str):
    """45 tasks: at least 93% of 400 data sets, allowing 2 standard errors of the simulation. A plain t interval
    fails some of these: 86 to 90%. `benchmarks/coverage.py` prints the whole table."""
    (setting,) = chosen(45, name)
    assert coverage.measure(setting, 400).coverage >= 0.93 - 2 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tasks", coverage.TASKS)
def test_coverage_over_the_whole_grid(tasks: int):
    """At least 93% from 45 tasks on; 92% was measured for one setting of 15."""
    floor = 0.92 if tasks < 45 else 0.93
    every = [*coverage.share_settings(tasks), *coverage.pass_settings(tasks), *coverage.difference_settings(tasks)]
    measured = [coverage.measure(setting, 400) for setting in every]
    assert np.mean([row.coverage for row in measured]) >= 0.95
    least = min(measured, key=lambda row: row.coverage)
    assert least.coverage >= floor - 3 * math.sqrt(0.05 * 0.95 / 400), least


def test_what_is_not_there_is_found_no_more_often_than_promised():
    for row in coverage.false_findings(15, 300):
        assert 1 - row.coverage <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300), row
