"""Planted patterns are named; noise is not."""

import numpy as np
import pytest
import torch
from answers import inputs_of, raw, returned, task_of
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import scale
from oracle.diagnose import diagnose
from oracle.poison import pattern
from oracle.reference import reference
from oracle.schema import Keyword, Output, Tensor

PAIR = (Tensor("x", ("R", "N")), Tensor("y", ("R", "N")))
PRODUCT = (Tensor("a", ("M", "K")), Tensor("b", ("K", "N")))
AFFINE = (Tensor("x", ("R", "N")), Tensor("weight", ("N",)), Tensor("bias", ("N",)))


def power(x, p=1):
    return x**p


COPY = task_of(lambda x: x.clone())
SOFTMAX = task_of(lambda x: torch.softmax(x, -1), scale=scale.softmax, reduces="N")
SUM = task_of(lambda x: x.sum(-1), scale=scale.total, reduces="N")
ADD = task_of(lambda x, y: x + y, PAIR)
AFFINED = task_of(lambda x, weight, bias: x * weight + bias, AFFINE)
MASKED = task_of(lambda x, m: torch.where(m, x, -x), (Tensor("x", ("R", "N")), Tensor("m", ("R", "N"), values="mask")))
MATMUL = task_of(lambda a, b: a @ b, PRODUCT, dims=("M", "K", "N"), scale=scale.product, reduces="K")
POWER = task_of(power, keywords=(Keyword("p", 1, (2,)),))
SQUARE = {"R": 20, "N": 20}


def said(task, got, dtype="float32", **case):
    """Diagnosis of `got(reference values, *inputs as float64 arrays)`."""
    inputs = inputs_of(task, dtype, **case)
    expected = reference(task, inputs)
    arguments = [torch.from_numpy(np.array(buffer.values(), dtype=np.float64)) for buffer in inputs.tensors]
    want = torch.from_numpy(expected.outputs[0].values.copy())
    return diagnose(task, inputs, expected, returned(inputs, raw(np.asarray(got(want, *arguments)), dtype)))


def put(want, region, value):
    """The reference with something else in a region."""
    got = want.clone()
    got[region] = value(want)[region] if callable(value) else value
    return got


def junk(want):
    """Values that are in no relation to the reference."""
    return torch.from_numpy(np.random.default_rng(5).uniform(-9, 9, want.shape))


# ruff: noqa: E501  (one pattern a line)
PLANTED = {
    # places
    "last partial block": (COPY, lambda w, x: put(w, np.s_[:, 1024:], junk), {"N": 1030}, "only the last partial block of N (the last dim) is wrong (index ≥ 1024 of 1030)"),
    "past an index": (COPY, lambda w, x: put(w, np.s_[:, 5:], junk), {"N": 9}, "only index ≥ 5 of N (the last dim) is wrong (size 9)"),
    "rows past the first": (COPY, lambda w, x: put(w, np.s_[1:], junk), {"R": 5, "N": 9}, "only index 0 of R (dim 0) is right"),
    "first row": (COPY, lambda w, x: put(w, np.s_[:1], junk), {"R": 5, "N": 9}, "only index 0 of R (dim 0) is wrong (size 5)"),
    "start of a row": (COPY, lambda w, x: put(w, np.s_[:, :3], junk), {"R": 5, "N": 9}, "only index ≤ 2 of N (the last dim) is wrong"),
    "every second": (COPY, lambda w, x: put(w, np.s_[:, 1::2], junk), {"R": 5, "N": 12}, "only every second index of N (the last dim) is wrong, from 1 on"),
    "above the diagonal": (COPY, lambda w, x: put(w, np.triu_indices(20, 1), junk), SQUARE, "what lies above the diagonal"),
    "masked": (MASKED, lambda w, x, m: torch.where(m > 0, w, junk(w)), SQUARE, "only where m is False is it wrong"),
    "large inputs": (COPY, lambda w, x: torch.where(x > 1.5, junk(w), w), SQUARE, "only where x ≥ 1.5"),
    "small inputs": (COPY, lambda w, x: torch.where(x.abs() < 1.5, junk(w), w), SQUARE, "only where |x| ≤ 1.4"),
    "rows with NaN": (SOFTMAX, lambda w, x: torch.nan_to_num(w, 0.0), SQUARE | {"regime": "one_nan"}, "only rows in which x has NaN are wrong; the wrong elements are 0"),
    # relations
    "twice": (COPY, lambda w, x: 2 * w, {}, "every element is 2 times the reference"),
    "twice, one element": (COPY, lambda w, x: 2 * w, {"R": 1, "N": 1}, "every element is 2 times the reference"),
    "half": (COPY, lambda w, x: w / 2, {}, "every element is half the reference"),
    "a size too large": (COPY, lambda w, x: 7 * w, {"N": 7}, "every element is N (7) times the reference"),
    "not divided by the root": (MATMUL, lambda w, a, b: w * 3**0.5, {"K": 3}, "every element is √K (1.73205) times the reference"),
    "any factor": (COPY, lambda w, x: 1.37 * w, {}, "every element is 1.37 times the reference"),
    "sign": (COPY, lambda w, x: -w, {}, "every element is the reference with its sign flipped"),
    "zeros": (COPY, lambda w, x: 0 * w, {}, "every element is 0"),
    "zeros in the tail": (COPY, lambda w, x: put(w, np.s_[:, 64:], 0.0), {"N": 70}, "index ≥ 64 of 70); the wrong elements are 0"),
    "NaN": (COPY, lambda w, x: w * np.nan, {}, "every element is NaN"),
    "offset": (COPY, lambda w, x: w + 0.5, {}, "every element is the reference + 0.5"),
    "row zero everywhere": (COPY, lambda w, x: w[:1].expand(w.shape), {"R": 5, "N": 9}, "only index 0 of R (dim 0) is right; the wrong elements are what row 0 should be"),
    "transposed": (COPY, lambda w, x: w.T, SQUARE, "every wrong element is in the order of the transposed reference"),
    "reversed": (COPY, lambda w, x: w.flip(-1), {"R": 5, "N": 8}, "every element is the reference reversed along N (the last dim)"),
    "shifted": (COPY, lambda w, x: w.roll(1, -1), {"R": 5, "N": 8}, "every element is the reference shifted by +1 along N (the last dim)"),
    "one value": (COPY, lambda w, x: torch.full_like(w, 3.25), {"R": 5, "N": 8}, "every element is the same value, 3.25"),
    "lost precision": (COPY, lambda w, x: w.half().double(), {"R": 5, "N": 8}, "is nearly right: off by at most 2^-1"),
    # rewrites
    "bias ignored": (AFFINED, lambda w, x, weight, bias: x * weight, {"R": 5, "N": 8}, "what bias = 0 gives: bias is ignored"),
    "weight ignored": (AFFINED, lambda w, x, weight, bias: x + bias, {"R": 5, "N": 8}, "what weight = 1 gives: weight is ignored"),
    "mask ignored": (MASKED, lambda w, x, m: x, SQUARE, "only where m is False is it wrong; the wrong elements are the reference with its sign flipped"),
    "keyword ignored": (POWER, lambda w, x: x, {"keywords": {"p": 2}}, "what p=1 gives: p is ignored"),
    "padded with zeros": (SOFTMAX, lambda w, x: torch.softmax(torch.cat([x, 0 * x[:, :1]], 1), -1)[:, :3], {"R": 2, "N": 3}, "what N padded with zeros from 3 to 4 gives"),
    "padded, zeros": (SOFTMAX, lambda w, x: torch.full_like(w, 0.25), {"R": 1, "N": 3, "regime": "zeros"}, "what N padded with zeros from 3 to 4 gives"),
    "whole blocks": (SUM, lambda w, x: x[:, :64].sum(-1), {"N": 100}, "what the first 64 of 100 along N give: the rest is left out"),
    "last block": (MATMUL, lambda w, a, b: a[:, 48:] @ b[48:], {"M": 8, "K": 64, "N": 8}, "what the last 16 of 64 along K give"),
    "NaN as zero": (SUM, lambda w, x: torch.nan_to_num(x, 0.0).sum(-1), {"regime": "one_nan"}, "what the reference gives with 0 in place of NaN"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_patterns_are_named(name):
    task, got, case, words = PLANTED[name]
    assert words in (said(task, got, **case) or "")


@pytest.mark.parametrize("layout", ["transposed", "sliced"])
def test_ignored_strides_are_named(layout):
    inputs = inputs_of(ADD, layout=f"{layout}:y", R=5, N=8)
    x, y = inputs.tensors
    flat = y.storage.view(np.float32)[y.offset :][:40].reshape(5, 8)
    found = diagnose(ADD, inputs, reference(ADD, inputs), returned(inputs, x.values() + flat))
    assert "what y read as contiguous memory gives: its strides are ignored" in (found or "")


def test_a_few_ones_of_the_wrong_sign_are_no_pattern():
    """As after shrinking: another argument's strides are what is wrong."""
    inputs = inputs_of(COPY, values={"x": [1.0, 1.0, -1.0, 1.0]}, R=2, N=2)
    got = np.array([[1, -1], [-1, 1]], np.float32)
    assert diagnose(COPY, inputs, reference(COPY, inputs), returned(inputs, got)) is None


@pytest.mark.parametrize("poison", [0, 1])
def test_unwritten_memory_is_named(poison):
    mark = pattern("float32", poison).view(np.float32)
    inputs = inputs_of(COPY, R=3, N=70)
    got = inputs.tensors[0].values().copy()
    got[:, 64:] = mark
    found = diagnose(COPY, inputs, reference(COPY, inputs), returned(inputs, got))
    assert found == (
        "only the last partial block of N (the last dim) is wrong (index ≥ 64 of 70); "
        "the wrong elements are what the memory held before: never written"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_patterns_are_named_in_half_precision(dtype):
    for name in ("twice", "sign", "any factor", "bias ignored", "last block", "padded with zeros", "transposed"):
        task, got, case, words = PLANTED[name]
        found = said(task, got, dtype, **case) or ""
        assert words.split(" times")[0][:24] in found or name == "any factor", (name, found)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.05, 0.3, 0.7, 1.0]),
    rows=st.integers(3, 9),
    columns=st.integers(5, 40),
    task=st.sampled_from([COPY, SOFTMAX, ADD, AFFINED, MASKED]),
)
def test_noise_is_met_with_silence(seed, share, rows, columns, task):
    rng = np.random.default_rng(seed)

    def noisy(want, *_):
        hit = torch.from_numpy(rng.random(want.shape) < share)
        return torch.where(hit, torch.from_numpy(rng.uniform(-50, 50, want.shape)), want)

    assert said(task, noisy, R=rows, N=columns) is None


def test_a_right_result_needs_no_diagnosis():
    assert said(COPY, lambda w, x: w) is None


def test_other_shapes_and_broken_outputs_are_met_with_silence():
    inputs = inputs_of(COPY)
    expected = reference(COPY, inputs)
    for output in (raw(np.zeros(3, np.float32)), raw(np.zeros((4, 4), np.float32), data=b"1")):
        assert diagnose(COPY, inputs, expected, returned(inputs, output)) is None


def test_the_first_wrong_output_is_described():
    task = task_of(lambda x: (x, x + 1), outputs=(Output("a"), Output("b")))
    inputs = inputs_of(task)
    x = inputs.tensors[0].values()
    found = diagnose(task, inputs, reference(task, inputs), returned(inputs, x, (x + 1) * 2))
    assert found == "every element is 2 times the reference"
