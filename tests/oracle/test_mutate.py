"""Mutants: valid, different, in a fixed order, split by hash; the faults that people make are among them."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.corpus import BUG, CONTROL, Kernel, kernels
from oracle.corpus.mutate import OPERATORS, SCORING, TUNING, Mutant, apply, digest, mutants
from oracle.errors import UsageError

SAMPLE = ["softmax__control_online", "matmul__control_grouped", "gelu__control_persistent", "attention__control_flash"]


def kernel(name: str, suite: str = "ops") -> Kernel:
    return next(k for k in kernels(suite=suite) if k.name == name)


@cache
def made(name: str, suite: str = "ops") -> list[Mutant]:
    return mutants(kernel(name, suite).source)


def described(name: str, operator: str) -> set[str]:
    return {m.description for m in made(name) if m.operator == operator}


@pytest.mark.parametrize("name", SAMPLE)
def test_mutants_are_valid_different_and_in_a_fixed_order(name: str) -> None:
    source = kernel(name).source
    first = mutants(source)
    assert first == mutants(source)
    digests = [mutant.digest for mutant in first]
    assert len(set(digests)) == len(digests)
    assert digest(source) not in digests
    assert [m.line for m in first] == sorted(m.line for m in first)
    for mutant in first:
        assert digest(mutant.source) == mutant.digest
        assert mutant.operator in OPERATORS
        assert 1 <= mutant.line <= source.count("\n")
        assert mutant.description


def test_every_operator_finds_work_in_the_corpus() -> None:
    names = [
        *SAMPLE,
        "rms_norm__control_rowblock",
        "add__control_flat",
        "relu__control_strided",
        "linear__control_tiles",
    ]
    seen = {m.operator for name in [*names, "silu__control_strided"] for m in made(name)}
    seen |= {m.operator for m in made("leaky_relu__control_flat", "seed")}
    assert set(OPERATORS) - seen == set()


def test_formatting_and_comments_do_not_matter() -> None:
    source = kernel("silu__control_flat").source
    assert digest(source) == digest("# a comment\n" + source.replace("x = tl.load(", "x = (tl.load)("))
    assert digest(source) != digest(source.replace("2048", "1024"))


@pytest.mark.parametrize(
    ("control", "bug"),
    [
        ("softmax__control_rowblock", "softmax__bug_other_zero"),
        ("gelu__control_flat", "gelu__bug_half_dropped"),
        ("rms_norm__control_rowblock", "rms_norm__bug_sqrt_forgotten"),
        ("l2_norm__control_rowblock", "l2_norm__bug_sqrt_forgotten"),
        ("leaky_relu__control_flat", "leaky_relu__bug_slope"),
        ("attention__control_flash", "attention__bug_not_rescaled"),
    ],
)
def test_published_bugs_are_mutants_of_their_controls(control: str, bug: str) -> None:
    assert kernel(bug, "seed").label == BUG
    assert digest(kernel(bug, "seed").source) in {m.digest for m in made(control, "seed")}


@pytest.mark.parametrize(
    ("name", "operator", "description"),
    [
        ("softmax__control_online", "update_dropped", "top = new_top → nothing"),
        ("softmax__control_online", "operand_dropped", "x - shift → x"),
        ("matmul__control_tiles", "loop_shortened", "range(0, K, BLOCK_K) → range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"),
        ("softmax__control_online", "contiguous_dropped", "x.contiguous() → x"),
        ("softmax__control_rowblock", "other_changed", "float('-inf') → 0.0"),
        ("softmax__control_rowblock", "size_fixed", "n_cols is always 1024"),
        ("rms_norm__control_onerow", "eps_dropped", "variance + eps → variance"),
        ("rms_norm__control_rowblock", "keyword_ignored", "eps is always 1e-06"),
        ("matmul__control_grouped", "stride_swapped", "rows[:, None] * N → rows[:, None] * K"),
        ("matmul__control_grouped", "accumulator_assigned", "acc += tl.dot(a, b) → acc = tl.dot(a, b)"),
        ("matmul__control_tiles", "grid_short", "triton.cdiv(M, 64) → M // 64"),
        ("attention__control_flash", "operator_swapped", "head % H // group → head % H % group"),
        ("attention__control_flash", "bound_moved", "rows[:, None] >= keys[None, :] → rows[:, None] > keys[None, :]"),
        ("max__control_rowblock", "comparison_changed", "NaN not seen"),
        ("add__control_flat", "dtype_changed", "torch.promote_types(x.dtype, y.dtype) → x.dtype"),
        ("argmax__control_rowblock", "dtype_changed", "torch.int64 → torch.int32"),
        ("transpose__control_tile", "arguments_swapped", "M and N swapped in the launch"),
        ("silu__control_strided", "stride_assumed", "x.stride(0) → x.contiguous().stride(0)"),
    ],
)  # fmt: skip
def test_the_faults_that_people_make(name: str, operator: str, description: str) -> None:
    assert description in described(name, operator)


def test_no_mutant_of_a_while_loop_touches_its_steering() -> None:
    """A loop that never ends costs a time-out and shows nothing of a judge."""
    for mutant in made("silu__control_persistent"):
        loop = next(node for node in ast.walk(ast.parse(mutant.source)) if isinstance(node, ast.While))
        assert "start += step" in ast.unparse(loop)


def test_halves_split_evenly_by_digest() -> None:
    halves = Counter(m.half for name in SAMPLE for m in made(name))
    assert set(halves) == {TUNING, SCORING}
    assert 0.4 < halves[TUNING] / halves.total() < 0.6


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**63), count=st.integers(0, 4), index=st.integers(0, 200))
def test_faults_by_seed_are_a_prefix_of_more_faults(seed: int, count: int, index: int) -> None:
    controls = kernels(label=CONTROL)
    source = controls[index % len(controls)].source
    few, first = apply(source, seed, count)
    more, all_of_them = apply(source, seed, count + 1)
    assert all_of_them[:count] == first
    assert len(first) == count
    assert len({digest(source), *(m.digest for m in all_of_them)}) == count + 2
    assert few == (first[-1].source if first else source)
    assert more == all_of_them[-1].source


def test_seeds_give_different_faults() -> None:
    source = kernel("softmax__control_online").source
    assert len({apply(source, seed, 1)[0] for seed in range(8)}) > 5


def test_a_source_that_does_not_parse_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="not a source that can be mutated"):
        mutants("def f(:\n")


def test_a_source_without_kernels_has_host_mutants_alone() -> None:
    found = mutants("import torch\n\n\ndef f(x, eps=1e-06):\n    return torch.empty(x.shape, dtype=x.dtype)\n")
    assert {m.operator for m in found} == {"output_like_input", "dtype_changed", "keyword_ignored", "default_changed"}
