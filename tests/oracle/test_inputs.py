"""A case is its input bytes: the same everywhere, whatever the layout, and exact in the test dtype."""

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from example_tasks import ATTENTION, CROSS_ENTROPY, MASKED_SOFTMAX, MATMUL, MIXED, SOFTMAX, TASKS
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.case import Case
from oracle.dtypes import FLOATS, NUMPY
from oracle.errors import UsageError
from oracle.inputs import build
from oracle.layouts import GUARD_BITS, LAYOUTS, guard_mask
from oracle.rng import Draws, stream_key
from oracle.schema import FLOAT_DTYPES
from oracle.tiers import base_case
from oracle.values import REGIMES


def case(task, /, **changes) -> Case:
    """The base case with changes; dims may be changed by their own names."""
    dims = {**task.base_dims(), **{name: changes.pop(name) for name in list(changes) if name in task.dims}}
    return replace(base_case(task), **{"dims": dims, **changes})


def values(task, tensor=0, **changes) -> np.ndarray:
    return build(task, case(task, **changes)).tensors[tensor].values()


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


# --- the generator --------------------------------------------------------------------------------------------------


def philox_words(key: int, count: int) -> list[int]:
    """Philox4x64-10 (Salmon et al. 2011) in plain integers; the counter starts at 1, as numpy's does."""
    mask, out, counter = 2**64 - 1, [], 0
    while len(out) < count:
        counter += 1
        c0, c1, c2, c3 = counter & mask, counter >> 64, 0, 0
        k0, k1 = key & mask, key >> 64
        for _ in range(10):
            p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
            c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
        out += [c0, c1, c2, c3]
    return out[:count]


@pytest.mark.parametrize("name", [("a",), (0, "ops/softmax", "float32", 3, "score", "x"), (2**63, "ü")])
def test_words_are_philox4x64_10(name):
    assert Draws(*name).words(11).tolist() == philox_words(stream_key(*name), 11)


def test_integers_come_from_the_words_by_shifts_alone():
    words = philox_words(stream_key("t"), 3)
    halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
    assert Draws("t").integers(5, 1000).tolist() == [half * 1000 >> 32 for half in halves[:5]]
    assert Draws("t").bits(5, 7).tolist() == [half >> 25 for half in halves[:5]]


def test_streams_differ_by_every_part_of_their_name():
    base = case(SOFTMAX)
    others = [base.with_(seed=1), base.with_(index=1), base.with_(stream="feedback"), base.with_(dtype="float16")]
    drawn = {tuple(build(SOFTMAX, one).tensors[0].values().ravel()[:4].astype(float)) for one in [base, *others]}
    assert len(drawn) == 5
    assert not np.array_equal(values(MATMUL, 0, K=32), values(MATMUL, 1, K=32))


GOLDEN = {
    "float32": "897e742aab5a49f2",
    "float16": "41d18c70cf54608a",
    "bfloat16": "cd63306d3757d2e1",
}
NONFINITE = ("nonfinite", "nan_injected", "one_nan", "one_inf", "infinite_rows", "hidden_rows", "hidden_elements")


def digest_of_everything(dtype: str) -> str:
    """One digest over all tasks, regimes and layouts."""
    state = hashlib.blake2b(digest_size=8)
    for task in TASKS:
        for name in sorted(REGIMES):
            state.update(build(task, case(task, dtype=dtype, regime=name, seed=5)).digest.encode())
        for name in LAYOUTS:
            state.update(build(task, case(task, dtype=dtype, layout=name, index=2)).digest.encode())
    return state.hexdigest()


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_bytes_are_pinned(dtype):
    """Recorded figures and tokens rest on these bytes: a change of a regime needs a new CASE_VERSION (oracle.case), one
    of the generator a new GENERATOR_VERSION (oracle.rng)."""
    assert digest_of_everything(dtype) == GOLDEN[dtype]


def test_another_process_draws_the_same_bytes():
    here = Path(__file__).parent
    program = "import test_inputs; print(test_inputs.digest_of_everything('float16'))"
    path = os.pathsep.join([str(here), str(here.parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == digest_of_everything("float16"), result.stderr


# --- regimes --------------------------------------------------------------------------------------------------------

shapes = st.fixed_dictionaries({"R": st.integers(1, 9), "N": st.integers(1, 40), "B": st.integers(1, 3)})


@given(st.sampled_from(sorted(REGIMES)), st.sampled_from(FLOAT_DTYPES), shapes, st.integers(0, 2**40))
@settings(max_examples=150, deadline=None)
def test_every_regime_fills_every_shape(regime, dtype, dims, seed):
    built = build(SOFTMAX, case(SOFTMAX, form="rank3", regime=regime, dtype=dtype, seed=seed, **dims))
    drawn = built.tensors[0].values()
    assert drawn.shape == (dims["B"], dims["R"], dims["N"])
    assert drawn.dtype == NUMPY[dtype]
    if regime not in NONFINITE:
        assert np.isfinite(drawn.astype(np.float64)).all()
    again = build(SOFTMAX, built.case)
    assert again.digest == built.digest
    assert bits(again.tensors[0].values()) == bits(drawn)


def rows(regime, dtype="float32", r=8, n=64, **changes) -> np.ndarray:
    return values(SOFTMAX, regime=regime, dtype=dtype, R=r, N=n, **changes).astype(np.float64)


def test_plain_regimes_have_the_distribution_they_state():
    drawn = rows("uniform", r=64, n=1000)
    assert -4 <= drawn.min() < -3.99
    assert 3.99 < drawn.max() < 4
    assert np.all(drawn * 2**21 == np.round(drawn * 2**21))
    drawn = rows("normal", r=64, n=1000)
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    drawn = rows("published", r=64, n=1000)
    assert -10 <= drawn.min() < -9.99
    assert 9.99 < drawn.max() < 10


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_magnitudes_follow_the_dtype(dtype):
    info = FLOATS[dtype]
    tiny, large = np.abs(rows("tiny", dtype)), np.abs(rows("large", dtype))
    assert (tiny[0::2] < info.smallest_normal).any()
    assert (tiny[0::2] > info.smallest_normal).any()
    assert tiny[0::2].max() <= 4 * info.smallest_normal
    assert tiny[1::2].min() >= info.smallest_normal
    assert info.max / 20 < large[0::2].max() <= info.max / 5
    assert large[1::2].max() <= max(4.0, info.max**0.5 / 32)
    moderate = rows("moderate_large", dtype)
    assert np.abs(moderate).min() >= 128
    assert np.abs(moderate).max() <= 2**13
    assert (moderate.max(axis=1) > 100).all()
    small = np.abs(rows("small", dtype))
    assert small.min() >= 2.0**-14
    assert small.max() <= 2.0**-7


def test_offset_has_a_mean_far_above_its_deviation():
    for dtype in FLOAT_DTYPES:
        drawn = rows("offset", dtype, n=513)
        assert (np.abs(drawn.mean(axis=1)) > 4000).all()
        assert (drawn.std(axis=1) > 0.5).all()
        assert (drawn[0] < 0).all()
        assert (drawn[1] > 0).all()


def test_critical_elements_are_planted():
    outlier = rows("outlier", r=8, n=33)
    assert [int(np.abs(row).argmax()) for row in outlier[:4]] == [32, 32, 0, 16]
    assert rows("outlier", r=2, n=48)[1].argmax() == 32
    spread = rows("spread")
    assert (spread.max(axis=1) - spread.min(axis=1) == 128).all()
    assert (rows("negative") < 0).all()
    assert (rows("far_negative") < 0).all()
    assert (rows("far_negative")[2::3] < -10000).all()
    lowest = rows("lowest")
    assert lowest.max() < -1e36
    assert -lowest.sum() < 1e40
    ties = rows("ties")
    assert ((ties == ties.max(axis=1, keepdims=True)).sum(axis=1) >= 2).all()
    ordered = rows("sorted")
    assert (np.diff(ordered[0::2]) >= 0).all()
    assert (np.diff(ordered[1::2]) <= 0).all()
    constant = rows("constant_rows")
    assert (constant == constant[:, :1]).all()
    assert (constant[0] == 0).all()
    assert len(np.unique(rows("equal"))) == 1
    zeros = rows("signed_zeros", r=3)
    assert (zeros == 0).all()
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()


def test_half_regimes_break_half_accumulation_only():
    """What they are for: the exact result fits float16, a sum kept in float16 goes wrong."""
    long = rows("half_sum", "float16", r=1, n=8193)[0]
    exact, running = long.sum(), np.float16(0)
    for element in long.astype(np.float16):
        running = np.float16(running + element)
    assert exact < 65504
    assert abs(float(running) - exact) > 0.01 * exact
    block = rows("overflow_f16", "float16", r=8, n=1000)
    assert (block**2 > 65504).all()
    assert (np.abs(np.cumsum(block[1])) > 65504).any()
    assert abs(block[1].sum()) < 65504


def test_nonfinite_regimes_plant_what_they_say():
    for seed in range(5):
        drawn = rows("nonfinite", seed=seed)
        assert not np.isfinite(drawn[0]).all() or (drawn[0] == 0).any()
        assert np.isneginf(drawn[1]).any()
        assert not np.isposinf(drawn[1]).any()
        assert np.isposinf(drawn[2]).any()
        assert np.isfinite(drawn[3]).all()
        nan = np.isnan(rows("one_nan", seed=seed))
        assert nan[:, -1].sum() == nan[:, 0].sum() == 1
        assert nan.sum() == 2
        inf = rows("one_inf", seed=seed)
        assert np.isposinf(inf[:, -1]).sum() == 1
        assert np.isneginf(inf[:, 0]).sum() == 1
    filled = rows("infinite_rows")
    assert np.isneginf(filled[0]).all()
    assert np.isfinite(filled[1, -1])
    assert np.isneginf(filled[1, :-1]).all()
    assert np.isfinite(filled[2]).all()
    injected = rows("nan_injected", r=64, n=1000)
    share = 1 - np.isfinite(injected).mean() + (injected == 0).mean()
    assert 0.045 < share < 0.055


def test_roles_are_honoured_by_every_regime():
    for regime in REGIMES:
        variance = values(MIXED, 1, regime=regime).astype(np.float64)
        assert not (variance < 0).any(), regime
        out = values(MIXED, 2, regime=regime)
        assert np.isnan(out).all()
        counts = values(MIXED, 3, regime=regime)
        assert counts.dtype == np.int32
        assert np.abs(counts).max() <= 127
        target = values(CROSS_ENTROPY, 1, regime=regime, keywords={"ignore_index": -100})
        assert target.dtype == np.int64
        assert (((target >= 0) & (target < 64)) | (target == -100)).all()
        mask = values(MASKED_SOFTMAX, 1, regime=regime)
        assert mask.dtype == np.bool_
        assert mask.any(axis=1).all() == (regime != "masked_rows"), regime


def test_masks_and_ignored_indices():
    share = values(MASKED_SOFTMAX, 1, R=64, N=1000).mean()
    assert 0.7 < share < 0.8
    assert values(MASKED_SOFTMAX, 1, R=64, N=1).all()
    mask = values(MASKED_SOFTMAX, 1, regime="masked_rows", R=4, N=33)
    assert not mask[0].any()
    assert mask[1].all()
    assert mask[2].sum() == mask[2, -1] == 1
    for ignored in (-100, 3):
        for seed in range(20):
            target = values(CROSS_ENTROPY, 1, R=3, seed=seed, keywords={"ignore_index": ignored})
            assert (target != ignored).any()
    assert 0.15 < (values(CROSS_ENTROPY, 1, R=4000) == -100).mean() < 0.35
    assert (values(CROSS_ENTROPY, 1, regime="all_ignored") == -100).all()
    assert values(CROSS_ENTROPY, 1, R=3, V=1, keywords={"ignore_index": 5}).max() in (0, 5)


@pytest.mark.parametrize("ignored", [-100, 3])
def test_what_is_hidden_and_what_is_not_is_finite(ignored):
    drawn = {"R": 9, "keywords": {"ignore_index": ignored}}
    assert (values(CROSS_ENTROPY, 1, regime="none_ignored", **drawn) != ignored).all()
    shown = values(CROSS_ENTROPY, 1, regime="hidden_rows", **drawn) != ignored
    assert shown.tolist() == [True, False] * 4 + [True]
    assert (np.isfinite(values(CROSS_ENTROPY, 0, regime="hidden_rows", **drawn)) == shown[:, None]).all()
    for n in (1, 2, 3, 256, 257):
        mask, x = (values(MASKED_SOFTMAX, i, regime="hidden_elements", R=5, N=n) for i in (1, 0))
        assert np.isfinite(x[mask]).all()
        assert np.isfinite(x[:, 0::3]).all()
        assert not np.isfinite(x[:, 1::3]).any()


def test_correlated_tensors_share_their_draws():
    a, b = build(MATMUL, case(MATMUL, regime="correlated", M=64, N=64)).tensors
    assert np.array_equal(a.values(), b.values())


def test_a_regime_of_one_tensor_leaves_the_others_plain():
    a, b = build(MATMUL, case(MATMUL, regime="zeros:b")).tensors
    assert not b.values().any()
    assert np.array_equal(a.values(), values(MATMUL, 0))


# --- layouts --------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(LAYOUTS),
    st.sampled_from(["rank1", "rank2", "rank3"]),
    st.sampled_from(FLOAT_DTYPES),
    st.fixed_dictionaries({"R": st.integers(0, 5), "N": st.integers(1, 9), "B": st.integers(0, 3)}),
)
@settings(max_examples=150, deadline=None)
def test_layouts_hold_the_same_values_between_intact_guards(layout, form, dtype, dims):
    plain = build(SOFTMAX, case(SOFTMAX, form=form, dtype=dtype, **dims)).tensors[0]
    buffer = build(SOFTMAX, case(SOFTMAX, form=form, dtype=dtype, layout=layout, **dims)).tensors[0]
    assert buffer.shape == plain.shape
    if layout != "expanded":
        assert bits(buffer.values()) == bits(plain.values())
    guards = guard_mask(buffer)
    elements = buffer.storage.view(f"u{NUMPY[dtype].itemsize}")
    assert (elements[guards] == GUARD_BITS[dtype]).all()
    assert np.isnan(buffer.storage.view(NUMPY[dtype])[guards].astype(np.float64)).all()
    assert guards[:64].all()
    assert guards[-64:].all()
    distinct = (
        plain.values().size
        if layout != "expanded"
        else np.prod([s for s, t in zip(buffer.shape, buffer.strides, strict=True) if t])
    )
    assert (~guards).sum() == distinct


def strides(layout, tensor=0, task=SOFTMAX, **changes):
    buffer = build(task, case(task, layout=layout, **changes)).tensors[tensor]
    return buffer.strides, buffer.offset


def test_layouts_are_what_they_are_called():
    dims = {"form": "rank3", "B": 2, "R": 3, "N": 5}
    assert strides("contiguous", **dims) == ((15, 5, 1), 64)
    assert strides("offset", **dims) == ((15, 5, 1), 65)
    assert strides("transposed", **dims) == ((15, 1, 3), 64)
    assert strides("sliced", **dims) == ((30, 10, 1), 69)
    assert strides("strided", **dims) == ((30, 10, 2), 64)
    assert strides("expanded", **dims) == ((0, 5, 1), 64)
    assert strides("transposed", form="rank1", N=5) == ((2,), 64)
    assert strides("sliced", form="rank1", N=5) == ((1,), 65)
    assert strides("transposed:b", 0, MATMUL)[0] == (64, 1)
    assert strides("transposed:b", 1, MATMUL)[0] == (1, 64)


def test_expanded_repeats_values_but_never_what_is_written_or_an_index():
    x = build(SOFTMAX, case(SOFTMAX, layout="expanded")).tensors[0]
    assert x.strides[0] == 0
    assert (x.values() == x.values()[:1]).all()
    built = build(MIXED, case(MIXED, layout="expanded")).tensors
    assert [0 in buffer.strides for buffer in built] == [True, True, False, False, False]
    assert 0 not in build(CROSS_ENTROPY, case(CROSS_ENTROPY, layout="expanded")).tensors[1].strides


def test_integer_guards_are_garbage_as_an_index():
    target = build(CROSS_ENTROPY, case(CROSS_ENTROPY)).tensors[1]
    assert (target.storage.view(np.int64)[guard_mask(target)] == np.iinfo(np.int64).max).all()


# --- calls and arguments --------------------------------------------------------------------------------------------


def names(arguments):
    return [getattr(argument, "name", argument) for argument in arguments]


def test_call_passes_what_is_required_or_differs_from_its_default():
    call = build(MIXED, case(MIXED)).call(reverse=True, poison=1, fill_lanes=True)
    assert names(call.positional) == ["x", "variance", "out", "counts", -1]
    assert names(call.keyword.values()) == ["weight"]
    assert (call.reverse, call.poison, call.fill_lanes) == (True, 1, True)
    given_keywords = {"keepdim": True, "shift": [2, 1], "dtype": "torch.float16"}
    call = build(MIXED, case(MIXED, keywords=given_keywords)).call()
    assert names(call.positional) == ["x", "variance", "out", "counts", -1, True]
    assert names(call.keyword.values()) == ["weight", [2, 1], "torch.float16"]
    call = build(MIXED, case(MIXED, form="pinned", keywords={"shift": [1, 2]})).call()
    assert names(call.positional) == ["x", 0]
    assert not call.keyword


def test_a_keyword_equal_in_python_but_not_in_json_is_passed():
    assert build(MIXED, case(MIXED, keywords={"keepdim": 0})).call().positional[-1] == 0
    assert len(build(MIXED, case(MIXED, keywords={"keepdim": False})).call().positional) == 5


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_arguments_are_fresh_copies_for_the_judge(dtype):
    built = build(
        MIXED, case(MIXED, dtype=dtype, layout="transposed", keywords={"shift": [2, 1], "dtype": "torch.float16"})
    )
    args, kwargs = built.arguments64()
    assert [getattr(a, "dtype", a) for a in args] == [torch.float64] * 3 + [torch.int32, -1]
    assert kwargs["weight"].dtype == torch.float64
    assert (kwargs["shift"], kwargs["dtype"]) == ((2, 1), torch.float16)
    native, _ = built.arguments()
    assert [a.dtype for a in native[:4]] == [getattr(torch, dtype)] * 3 + [torch.int32]
    assert all(a.is_contiguous() for a in (*args[:4], *native[:4]))
    assert torch.equal(native[0].double(), args[0])
    args[0].zero_()
    assert built.arguments64()[0][0].any()


def test_has_empty():
    assert build(SOFTMAX, case(SOFTMAX, R=0)).has_empty
    assert not build(SOFTMAX, case(SOFTMAX, B=0)).has_empty  # rank2 does not use B


# --- explicit values ------------------------------------------------------------------------------------------------


def test_explicit_values_replace_drawn_ones_exactly():
    flat = [1.5, "nan", "-inf", -0.0, 2.0**-149, "inf"]
    built = build(SOFTMAX, case(SOFTMAX, R=2, N=3, values={"x": flat}, layout="sliced"))
    expected = np.array([float(v) for v in flat], dtype=np.float32).reshape(2, 3)
    assert np.array_equal(built.tensors[0].values(), expected, equal_nan=True)
    assert np.signbit(built.tensors[0].values()[1, 0])
    only_b = build(MATMUL, case(MATMUL, M=2, K=1, N=2, values={"b": [1, 2]}))
    assert only_b.tensors[1].values().tolist() == [[1.0, 2.0]]
    assert np.array_equal(only_b.tensors[0].values(), values(MATMUL, 0, M=2, K=1, N=2))
    mask = build(MASKED_SOFTMAX, case(MASKED_SOFTMAX, R=1, N=2, values={"mask": [True, 0]})).tensors[1]
    assert mask.values().tolist() == [[True, False]]


@given(st.sampled_from(sorted(REGIMES)), st.sampled_from(FLOAT_DTYPES))
@settings(max_examples=60, deadline=None)
def test_drawn_values_written_out_as_json_are_the_same_input(regime, dtype):
    drawn = build(SOFTMAX, case(SOFTMAX, R=4, N=5, regime=regime, dtype=dtype))
    flat = [v if np.isfinite(v) else str(v) for v in drawn.tensors[0].values().astype(np.float64).ravel().tolist()]
    written = build(SOFTMAX, drawn.case.with_(values={"x": flat}, regime="uniform"))
    got, wanted = written.tensors[0].values(), drawn.tensors[0].values()
    assert np.array_equal(got, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(wanted))


# --- cases that do not fit ------------------------------------------------------------------------------------------

BAD = {
    "task": dict(task="test/other"),
    "form": dict(form="rank9"),
    "form type": dict(form=["rank2"]),
    "dtype": dict(dtype="int64"),
    "dtype type": dict(dtype=None),
    "layout": dict(layout="diagonal"),
    "layout tensor": dict(layout="sliced:y"),
    "layout colon": dict(layout="sliced:"),
    "layout type": dict(layout=7),
    "regime": dict(regime="wild"),
    "regime tensor": dict(regime="zeros:y"),
    "dims missing": dict(dims={"B": 2, "R": 8}),
    "dims unknown": dict(dims={"B": 2, "R": 8, "N": 4, "Q": 1}),
    "dims type": dict(dims=[2, 8, 4]),
    "dim string": dict(N="4"),
    "dim bool": dict(N=True),
    "dim float": dict(N=4.0),
    "dim negative": dict(R=-1),
    "dim empty": dict(N=0),
    "dim huge": dict(N=2**40),
    "seed": dict(seed="0"),
    "index": dict(index=1.5),
    "stream": dict(stream=3),
    "keyword": dict(keywords={"dim": 1}),
    "keywords type": dict(keywords=["dim"]),
    "values tensor": dict(values={"y": []}),
    "values type": dict(values=[1.0]),
    "values count": dict(R=1, N=2, values={"x": [1.0]}),
    "values nested": dict(R=1, N=2, values={"x": [[1.0], [2.0]]}),
    "values string": dict(R=1, N=2, values={"x": [1.0, "many"]}),
    "values null": dict(R=1, N=2, values={"x": [1.0, None]}),
    "values inexact": dict(R=1, N=2, values={"x": [1.0, 0.1]}),
    "values too large": dict(R=1, N=2, values={"x": [1.0, 1e300]}),
    "values not repeating": dict(R=2, N=1, layout="expanded", values={"x": [1.0, 2.0]}),
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD.keys())
def test_a_case_that_does_not_fit_is_a_usage_error_of_one_line(changes):
    with pytest.raises(UsageError) as error:
        build(SOFTMAX, case(SOFTMAX, **changes))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("case ")


def test_indices_out_of_range_and_wrong_keyword_values_are_usage_errors():
    for changes in (
        dict(R=2, values={"target": [0, 64]}),
        dict(R=2, values={"target": [0, -1]}),
        dict(R=2, values={"target": [0, 2**70]}),
        dict(R=2, values={"target": [0, 0.5]}),
        dict(keywords={"ignore_index": "all"}),
    ):
        with pytest.raises(UsageError):
            build(CROSS_ENTROPY, case(CROSS_ENTROPY, **changes))
    assert build(CROSS_ENTROPY, case(CROSS_ENTROPY, R=2, values={"target": [0, -100]}))
    for value in ("torch.nothing", "torch.nn", ["torch.cuda"]):
        with pytest.raises(UsageError, match="no torch dtype"):
            build(MIXED, case(MIXED, keywords={"dtype": value}))


def test_arithmetic_in_shapes():
    q, k, v = build(ATTENTION, case(ATTENTION, Hk=2, G=3, M=5, N=4)).tensors
    assert q.shape == (1, 6, 5, 32)
    assert k.shape == v.shape == (1, 2, 4, 32)


# --- cost -----------------------------------------------------------------------------------------------------------


def test_building_is_cheap():
    def best(**changes):
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            build(SOFTMAX, case(SOFTMAX, **changes))
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    assert best() < 0.002
    assert best(R=100, N=1000) < 0.02
