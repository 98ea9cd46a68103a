"""The portfolio: within its limit, the same for the same seed, each case booked in the tier of what it changes."""

from collections import Counter
from itertools import pairwise

import pytest
from example_tasks import ATTENTION, CROSS_ENTROPY, MASKED_SOFTMAX, MATMUL, MIXED, SOFTMAX, TASKS

from agentloop.content import load_tasks
from oracle.case import Case
from oracle.dtypes import FLOATS
from oracle.errors import UsageError
from oracle.inputs import build, resolve_keywords
from oracle.portfolio import portfolio
from oracle.proposals import main_dim, size_class
from oracle.schema import CORE_TIERS, FLOAT_DTYPES, FULL_TIERS, Dim, Form, Task, Tensor
from oracle.strategies import STRATEGIES, published_cases
from oracle.tiers import base_case, changes, tier_of, used_dims

SEEDS = range(6)


def differences(task: Task, case: Case) -> list[str]:
    """What a case changes from base, told apart here without the code under test."""
    base = base_case(task)
    form = task.form(case.form)
    shared = {name for name in task.dims for tensor in form.tensors if name in str(tensor.shape)}
    keywords = resolve_keywords(task, form, case.keywords)
    plain = resolve_keywords(task, form, {})
    return (
        ["form"] * (case.form != base.form)
        + [f"dim {name}" for name in sorted(shared) if case.dims[name] != base.dims[name]]
        + [name for name in ("dtype", "regime", "layout") if getattr(case, name) != getattr(base, name)]
        + [f"keyword {name}" for name in plain if keywords[name] != plain[name]]
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_case_builds_and_stands_in_its_tier(task):
    cases = portfolio(task)
    assert [case.tier for case in cases] == sorted((case.tier for case in cases), key=FULL_TIERS.index)
    for case in cases:
        build(task, case)
        changed = differences(task, case)
        assert len(changed) == len(changes(task, case))
        kinds = {change.split()[0] for change in changed}
        tiers = {"dtype": "dtypes", "regime": "values", "layout": "layouts", "keyword": "keywords"}
        latest = [tiers[kind] for kind in kinds if kind in tiers]
        latest += ["empty" if 0 in case.dims.values() else "shapes"] if "dim" in kinds else []
        latest += [task.form(case.form).tier] if "form" in kinds else []
        assert case.tier == max(latest, key=FULL_TIERS.index, default="base")
    assert [case for case in cases if case.tier == "base"] == [base_case(task)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_in_each_tier_one_change_comes_before_combinations(task):
    for tier in FULL_TIERS:
        several = [len(differences(task, case)) > 1 for case in portfolio(task) if case.tier == tier]
        assert several == sorted(several)


@pytest.mark.parametrize("limit", [1, 5, 17, 40])
def test_limit_per_dtype_domain_and_nesting(limit):
    for task in (SOFTMAX, MATMUL, ATTENTION):
        cases = portfolio(task, limit=limit)
        assert max(Counter(case.dtype for case in cases).values()) <= limit
        assert base_case(task) in cases
        core = portfolio(task, limit=limit, domain="core")
        assert core == [case for case in cases if case.tier in CORE_TIERS]
        assert set(map(repr, cases)) <= set(map(repr, portfolio(task, limit=60)))
    assert max(Counter(case.dtype for case in portfolio(SOFTMAX)).values()) == 40


def test_small_limits_still_reach_every_tier():
    assert {case.tier for case in portfolio(SOFTMAX, limit=16)} == set(FULL_TIERS) - {"keywords"}
    assert {case.tier for case in portfolio(ATTENTION, limit=16)} == set(FULL_TIERS) - {"empty"}


def test_same_seed_same_cases_other_seed_other_combinations():
    for task in (SOFTMAX, ATTENTION):
        assert portfolio(task, seed=3) == portfolio(task, seed=3)
        sizes = [{tuple(case.dims.values()) for case in portfolio(task, seed=seed)} for seed in SEEDS]
        assert all(a != b for a, b in pairwise(sizes))


def test_streams_share_no_random_input():
    def digests(stream):
        return {
            build(SOFTMAX, c).digest
            for c in portfolio(SOFTMAX, stream=stream)
            if c.regime == "uniform" and 0 not in c.dims.values()
        }

    assert not digests("score") & digests("feedback")


def test_no_input_twice():
    for task in TASKS:
        digests = Counter(build(task, case).digest for case in portfolio(task))
        assert max(digests.values()) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_boundaries_are_reached_at_every_seed(seed):
    cases = [case for case in portfolio(SOFTMAX, seed=seed) if case.tier == "shapes"]
    reached = {size_class(case.dims["N"]) for case in cases}
    assert {"one", "small", "beyond", "long", "above"} <= reached
    assert {1, 3} <= {case.dims["R"] for case in cases}
    assert any(case.dims["N"] == 65537 for case in cases)
    assert {case.form for case in cases} == {"rank1", "rank2", "rank3"}
    assert any(len(differences(SOFTMAX, case)) > 1 for case in cases)
    cases = [case for case in portfolio(MATMUL, seed=seed) if case.tier == "shapes"]
    assert {1025, 4097, 1} <= {case.dims["K"] for case in cases}
    assert any(all(case.dims[d] & (case.dims[d] - 1) for d in "MKN") for case in cases)


@pytest.mark.parametrize("seed", SEEDS)
def test_half_types_at_base_uneven_and_long(seed):
    for dtype in ("float16", "bfloat16"):
        cases = [case for case in portfolio(SOFTMAX, seed=seed) if case.dtype == dtype]
        plain = [case.dims["N"] for case in cases if case.tier == "dtypes"]
        assert {256, 65537} <= set(plain)
        assert any(size & (size - 1) and size < 1024 for size in plain)
        values = {case.regime: case.dims["N"] for case in cases if case.tier == "values"}
        assert values["half_sum"] == 65537
        assert ("overflow_f16" in values) == (dtype == "float16")
        assert {"moderate_large", "large", "zeros", "offset"} <= set(values)


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.parametrize("name", ["softmax", "max", "argmax", "layer_norm", "sum"])
def test_many_rows_whole_blocks_and_nan_far_along_a_row_at_every_seed(name, seed):
    task = load_tasks()[f"ops/{name}"]
    cases = portfolio(task, seed=seed)
    assert max(Counter(case.dtype for case in cases).values()) <= 40
    assert any(case.dims["R"] > 256 and "R" in used_dims(task, task.form(case.form)) for case in cases)
    assert any(size_class(case.dims["N"]) == "blocks" for case in cases)
    assert any(case.regime.startswith("one_nan") and case.dims["N"] == 8193 for case in cases)


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.parametrize("name", ["add", "mul"])
def test_each_way_to_broadcast_is_tried_at_every_seed(name, seed):
    task = load_tasks()[f"ops/{name}"]
    cases = portfolio(task, seed=seed)
    assert {case.form for case in cases} == {form.name for form in task.forms}
    plain = {case.form for case in cases if case.dtype == "float32" and case.tier == "shapes"}
    assert plain >= {"row", "column", "outer", "left", "middle", "scalar"}


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_counted_rows_long_heads_and_repeated_batches_at_every_seed(seed):
    tasks = load_tasks()
    crowd = [case for case in portfolio(tasks["ops/cross_entropy"], seed=seed) if case.regime == "none_ignored"]
    assert [(case.dtype, case.dims["R"]) for case in crowd] == [("float32", 2051)]
    heads = portfolio(tasks["ops/rope"], seed=seed)
    assert {case.form for case in heads if 2 * case.dims["P"] > 1024} == {"whole", "partial"}
    for name in ("transpose", "softmax", "add"):
        cases = portfolio(tasks[f"ops/{name}"], seed=seed)
        assert {"transposed", "expanded"} <= {case.layout for case in cases if case.form == "rank4"}


def test_every_listed_regime_layout_keyword_and_empty_dim_has_its_case():
    for task in TASKS:
        cases = portfolio(task)
        assert set(task.regimes) <= {case.regime.partition(":")[0] for case in cases}
        assert set(task.layouts) <= {case.layout for case in cases}
        for keyword in task.keywords:
            seen = [case.keywords[keyword.name] for case in cases if keyword.name in case.keywords]
            assert all(value in seen for value in keyword.values), keyword
        for name in used_dims(task, task.forms[0]):
            assert not task.dims[name].empty or any(case.dims[name] == 0 for case in cases)


def test_a_regime_that_drowns_is_tried_on_one_tensor_first():
    single = [case.regime for case in portfolio(MATMUL) if case.tier == "values" and case.dtype == "float32"]
    assert single.index("zeros:a") < single.index("zeros")
    assert "correlated" in single
    assert "correlated:a" not in single
    assert "zeros:x" not in [case.regime for case in portfolio(SOFTMAX)]


def test_cases_stay_small():
    for task in (SOFTMAX, MATMUL, ATTENTION, MASKED_SOFTMAX):
        for case in portfolio(task):
            buffers = build(task, case).tensors
            assert sum(buffer.values().size for buffer in buffers) <= 4 * 80_000 or task is MATMUL
    for case in portfolio(MATMUL):
        assert case.dims["M"] * case.dims["N"] * case.dims["K"] <= 5_000_000


@pytest.mark.parametrize("task", [SOFTMAX, CROSS_ENTROPY, MIXED], ids=lambda task: task.name)
def test_shown_inputs_are_redrawn(task):
    cases = portfolio(task)
    shown = frozenset(build(task, case).digest for case in cases)
    again = portfolio(task, exclude=shown)
    digests = [build(task, case).digest for case in again]
    assert not shown & set(digests)
    assert Counter(case.tier for case in again) - Counter(case.tier for case in cases) == Counter()
    lost = Counter(case.tier for case in cases) - Counter(case.tier for case in again)
    assert lost["base"] == lost["shapes"] == lost["dtypes"] == lost["layouts"] == 0
    assert all(case.tier == tier_of(task, case) for case in again)
    assert portfolio(task, exclude=frozenset({"other"})) == cases
    half = frozenset(sorted(shown)[::2])
    kept = portfolio(task, exclude=half)
    assert {d for case in kept if (d := build(task, case).digest) in shown} >= shown - half


def test_bad_options_are_usage_errors():
    with pytest.raises(UsageError, match="--domain"):
        portfolio(SOFTMAX, domain="all")
    with pytest.raises(UsageError, match="--cases"):
        portfolio(SOFTMAX, limit=0)


def test_tasks_without_float32_or_with_one_dtype():
    half = Task(
        suite="test",
        name="half",
        signature="half(x)",
        contract="",
        dims={"N": Dim((1, 3), base=4)},
        forms=(Form("rank1", (Tensor("x", ("N",)),)),),
        reference=lambda x: x,
        dtypes=("float16",),
    )
    cases = portfolio(half)
    assert {case.dtype for case in cases} == {"float16"}
    assert cases[0].tier == "base"
    assert "dtypes" not in {case.tier for case in cases}


def test_main_dim():
    assert main_dim(SOFTMAX) == "N"
    assert main_dim(MATMUL) == "K"
    assert main_dim(MIXED) == "R"
    assert main_dim(CROSS_ENTROPY) == "V"


@pytest.mark.parametrize(
    ("label", "sizes"),
    {
        "one": (1,),
        "small": (3, 7, 9),
        "below": (15, 31, 1023),
        "above": (17, 33, 513),
        "beyond": (1025, 2000),
        "long": (2049, 65537),
        "blocks": (2048, 4096, 8192),
        "other": (2, 8, 64, 100, 1000, 1024),
    }.items(),
)
def test_size_class(label, sizes):
    assert {size_class(size) for size in sizes} == {label}


def test_shipped_tasks_have_portfolios_that_build():
    for task in load_tasks().values():
        cases = portfolio(task, seed=1)
        assert {case.tier for case in cases} >= {"base", "shapes", "values"}, task.id
        for case in cases[::3]:
            build(task, case)


# --- published strategies -------------------------------------------------------------------------------------------


def test_published_strategies_follow_the_schema():
    assert len(STRATEGIES) == 7
    for strategy in STRATEGIES:
        for dtype in ("float32", "float16"):
            cases = published_cases(SOFTMAX, strategy, 7, 30, dtype)
            only = {"single_dtype_f32": "float32", "single_dtype_f16": "float16"}.get(strategy, dtype)
            assert len(cases) == (30 if dtype == only else 0)
            assert cases == published_cases(SOFTMAX, strategy, 7, 30, dtype)
            for case in cases:
                assert case.dims["B"] in (1, 2, 8)
                assert case.dims["R"] in (1, 7, 128)
    sizes = {
        s: {c.dims["N"] for c in published_cases(SOFTMAX, s, 0, 60, "float32")}
        for s in ("default", "boundary", "regular")
    }
    assert sizes == {"default": {1, 3, 256, 1025}, "boundary": {1, 3, 7}, "regular": {128, 256, 512}}
    buckets = Counter(case.regime for case in published_cases(SOFTMAX, "adversarial", 0, 50, "float16"))
    assert buckets == dict.fromkeys(("zeros", "tiny", "max_over_10", "uniform_1e3", "nan_injected"), 10)
    assert {case.regime for case in published_cases(SOFTMAX, "nan_injected", 0, 9, "float32")} == {"nan_injected"}
    assert published_cases(SOFTMAX, "default", 0, 5, "bfloat16") == []


def test_published_values_lie_in_the_published_range():
    for case in published_cases(SOFTMAX, "default", 0, 5, "float32"):
        drawn = build(SOFTMAX, case).tensors[0].values()
        assert (abs(drawn) <= 10).all()
    bucket = published_cases(SOFTMAX, "adversarial", 0, 3, "float16")[2]
    assert abs(build(SOFTMAX, bucket).tensors[0].values()).max() <= FLOATS["float16"].max / 10


def test_unknown_strategy_and_task_without_schema():
    with pytest.raises(UsageError, match="adversarial"):
        published_cases(SOFTMAX, "wild", 0, 1, "float32")
    with pytest.raises(UsageError, match="no published schema"):
        published_cases(MATMUL, "default", 0, 1, "float32")


def test_dtypes_are_the_schema_s():
    assert set(SOFTMAX.dtypes) == set(FLOAT_DTYPES)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_broadcasts_are_reached_within_the_default_limit(name):
    """Of many ways to call an operator, at most two are left to chance."""
    task = load_tasks()[f"ops/{name}"]
    forms = {form.name for form in task.forms if form.tier == "shapes"}
    for seed in SEEDS:
        reached = {case.form for case in portfolio(task, seed=seed) if case.tier in ("base", "shapes")}
        assert len(forms - reached) <= 2
        assert {"row", "column", "outer"} <= reached
