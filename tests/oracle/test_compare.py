"""The rules of the comparison: what is right, what is wrong, and which kind of wrong."""

import json

import numpy as np
import pytest
import torch
from answers import inputs_of, raw, returned, task_of
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.compare import WORST, _largest, compare, wrong_elements
from oracle.dtypes import FLOATS, NUMPY
from oracle.errors import InfrastructureError
from oracle.poison import pattern
from oracle.reference import Quantity, ReferenceCache, reference
from oracle.schema import Keyword, Output, Tensor
from oracle.tolerance import policy
from oracle.verdict import FAILURE_KINDS
from oracle.worker.protocol import CRASHED, MEMORY, RAISED, TIMEOUT, Outcome, RawTensor

COPY = task_of(lambda x: x.clone())


def kind(task, inputs, outcome, tolerance=None):
    result = compare(reference(task, inputs), outcome, task, inputs, tolerance or policy())
    json.dumps([result.stats, result.worst], allow_nan=False)  # what is stored must be JSON
    assert "\n" not in result.message
    return result.kind


def copied(values, dtype="float32", got=None, task=COPY):
    """Kind of failure where the reference is `values` (one row) and the candidate returned `got`."""
    inputs = inputs_of(task, dtype, values={"x": values}, R=1, N=len(values))
    return kind(task, inputs, returned(inputs, raw(np.array(got, dtype=np.float64)[None], dtype)))


# --- structure, shape, dtype, device, strides, aliasing -------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"shape": (2, 8)}, "wrong_shape"),
        ({"shape": ()}, "wrong_shape"),
        ({"dtype": "float16"}, "wrong_dtype"),
        ({"dtype": "complex64"}, "wrong_dtype"),
        ({"device": "cuda:0"}, "wrong_structure"),
        ({"device": "meta"}, "wrong_structure"),
        ({"data": b"123"}, "wrong_structure"),
        ({"data": b""}, "wrong_structure"),
        ({"aliases": "x"}, "aliased_output"),
        ({"contiguous": False}, None),
    ],
)
def test_form_of_an_output_is_exact(changes, expected):
    inputs = inputs_of(COPY, R=4, N=4)
    assert kind(COPY, inputs, returned(inputs, raw(inputs.tensors[0].values(), **changes))) == expected


def test_contiguity_is_judged_only_where_the_contract_demands_it():
    task = task_of(lambda x: x.clone(), outputs=(Output(contiguous=True),))
    inputs = inputs_of(task)
    output = raw(inputs.tensors[0].values(), contiguous=False)
    assert kind(task, inputs, returned(inputs, output)) == "wrong_structure"


def test_structure_is_exact():
    pair = task_of(lambda x: (x + 1, x.sum(-1)), outputs=(Output("a"), Output("b")))
    inputs = inputs_of(pair)
    values = inputs.tensors[0].values()
    right = returned(inputs, values + 1, values.sum(-1))
    assert kind(pair, inputs, right) is None
    assert kind(pair, inputs, returned(inputs, values + 1)) == "wrong_structure"
    assert kind(pair, inputs, returned(inputs, values + 1, values.sum(-1), values)) == "wrong_structure"
    for structure in ("None", "int", "list\nof 3"):
        assert kind(pair, inputs, returned(inputs, structure=structure)) == "wrong_structure"
    single = inputs_of(COPY)
    assert kind(COPY, single, returned(single, values, structure="tuple")) == "wrong_structure"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(TIMEOUT), "timeout"),
        (Outcome(MEMORY), "memory_limit"),
        (Outcome(CRASHED), "crashed"),
        (Outcome("nonsense"), "crashed"),
        (Outcome(RAISED, error_kind="compile_error", message="two\nlines"), "compile_error"),
        (Outcome(RAISED, error_kind="whatever"), "launch_error"),
    ],
)
def test_a_call_that_did_not_return(outcome, expected):
    assert kind(COPY, inputs_of(COPY), outcome) == expected


# --- memory ---------------------------------------------------------------------------------------------------------


def changed_storage(inputs, element):
    storages = tuple(buffer.storage.copy() for buffer in inputs.call().buffers())
    storages[0].view(np.uint32)[inputs.tensors[0].offset + element] ^= 1
    return storages


@pytest.mark.parametrize(
    ("layout", "element", "expected"),
    [
        ("contiguous", 0, "input_mutated"),
        ("contiguous", 15, "input_mutated"),
        ("contiguous", 16, "out_of_bounds"),
        ("contiguous", -1, "out_of_bounds"),
        ("strided", 1, "out_of_bounds"),  # between two elements
        ("strided", 2, "input_mutated"),
        ("expanded", 3, "input_mutated"),
    ],
)
def test_memory_that_must_not_change(layout, element, expected):
    inputs = inputs_of(COPY, R=4, N=4, layout=layout)
    outcome = returned(inputs, inputs.tensors[0].values(), storages=changed_storage(inputs, element))
    assert kind(COPY, inputs, outcome) == expected


def test_arguments_that_change_by_contract_are_judged_by_value():
    def double(x):
        x.mul_(2)
        return x

    task = task_of(double, mutates=("x",))
    inputs = inputs_of(task, R=2, N=2)
    after = inputs.tensors[0].storage.copy()
    flat = after.view(np.float32)
    start = inputs.tensors[0].offset
    flat[start : start + 4] *= 2
    output = raw(flat[start : start + 4].reshape(2, 2), aliases="x")
    assert kind(task, inputs, returned(inputs, output, storages=(after,))) is None
    assert kind(task, inputs, returned(inputs, output)) == "numerical_mismatch"


def test_memory_that_was_not_read_back_is_our_trouble():
    inputs = inputs_of(COPY)
    with pytest.raises(InfrastructureError, match="storages"):
        kind(COPY, inputs, returned(inputs, inputs.tensors[0].values(), storages=()))


def test_a_change_after_the_call_is_a_late_write():
    inputs = inputs_of(COPY)
    assert kind(COPY, inputs, returned(inputs, inputs.tensors[0].values(), late=True)) == "late_write"


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference_", "got", "expected"),
    [
        (["nan"], [np.nan], None),
        (["inf"], [np.inf], None),
        (["inf"], [-np.inf], "nonfinite_mismatch"),
        (["nan"], [0.0], "nonfinite_mismatch"),
        (["nan"], [np.inf], "nonfinite_mismatch"),
        ([1.0], [np.nan], "nonfinite_mismatch"),
        ([1.0], [np.inf], "nonfinite_mismatch"),
        (["inf"], [3e38], "nonfinite_mismatch"),
        ([0.0], [-0.0], None),
        ([1.0], [1.001], "numerical_mismatch"),
        ([1.0, "nan"], [1.001, 0.0], "numerical_mismatch"),
    ],
)
def test_nonfinite_elements_match_in_place_and_sign(reference_, got, expected):
    assert copied(reference_, got=got) == expected


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_results_below_the_smallest_normal_may_be_flushed(dtype):
    least = FLOATS[dtype].smallest_normal
    task = task_of(lambda x: x / 2)
    inputs = inputs_of(task, dtype, values={"x": [least, 4 * least]}, R=1, N=2)
    right = np.array([[0.0, 2 * least]])
    assert kind(task, inputs, returned(inputs, raw(right, dtype))) is None
    if dtype == "float16":  # float32 arithmetic does not flush there
        assert kind(task, inputs, returned(inputs, raw(0 * right, dtype))) == "numerical_mismatch"


def overflow(dtype, value, got):
    """A reference of `value`, whatever the dtype can hold."""
    quantity = single(np.array([value]), dtype)
    return bool(wrong_elements(np.array([got]).astype(NUMPY[dtype]), quantity, np.array([abs(value) * 1e-3]))[0])


def single(values, dtype, judged=True):
    judged = np.broadcast_to(judged, values.shape)
    return Quantity("out", values, dtype, np.abs(values), np.zeros_like(values), judged)


@pytest.mark.parametrize("sign", [1, -1])
def test_near_the_overflow_threshold_finite_and_infinite_are_both_right(sign):
    assert not overflow("float16", sign * 65515.0, sign * np.inf)
    assert not overflow("float16", sign * 65530.0, sign * 65504.0)
    assert not overflow("float16", sign * 65530.0, sign * np.inf)
    assert overflow("float16", sign * 65530.0, -sign * np.inf)
    assert overflow("float16", sign * 60000.0, sign * np.inf)
    assert overflow("float16", sign * 70000.0, sign * 65504.0)
    assert not overflow("float16", sign * 70000.0, sign * np.inf)
    assert not overflow("float32", sign * 1e39, sign * np.inf)


def test_elements_out_of_the_tasks_range_are_not_judged():
    task = task_of(lambda x: x * x, in_range=lambda x: x.abs() < 1e15)
    inputs = inputs_of(task, values={"x": [2.0**60, 2.0]}, R=1, N=2)
    assert kind(task, inputs, returned(inputs, raw([[np.nan, 4.0]], "float32"))) is None
    assert kind(task, inputs, returned(inputs, raw([[np.nan, 5.0]], "float32"))) == "numerical_mismatch"


@pytest.mark.parametrize("poison", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_fresh_memory_in_an_output_is_unwritten(dtype, poison):
    inputs = inputs_of(COPY, dtype, R=4, N=4)
    output = inputs.tensors[0].values().copy()
    output[-1, -1] = pattern(dtype, poison).view(output.dtype)
    assert kind(COPY, inputs, returned(inputs, output)) == "unwritten_output"
    other = inputs.tensors[0].values().copy()
    other[-1, -1] = np.nan
    assert kind(COPY, inputs, returned(inputs, other)) == "nonfinite_mismatch"


def test_booleans_and_integers_are_exact():
    task = task_of(
        lambda x: (x > 0, (x > 0).sum(-1)), outputs=(Output("positive", dtype="bool"), Output("count", dtype="int64"))
    )
    inputs = inputs_of(task)
    positive = inputs.tensors[0].values() > 0
    count = positive.sum(-1)
    assert kind(task, inputs, returned(inputs, positive, count)) is None
    truthy = RawTensor("bool", positive.shape, True, "cpu", (positive.astype(np.uint8) * 7).tobytes())
    assert kind(task, inputs, returned(inputs, truthy, count)) is None
    assert kind(task, inputs, returned(inputs, ~positive, count)) == "numerical_mismatch"
    assert kind(task, inputs, returned(inputs, positive, count + 1)) == "numerical_mismatch"
    fresh = np.full_like(count, pattern("int64", 0).view(np.int64))
    assert kind(task, inputs, returned(inputs, positive, fresh)) == "unwritten_output"


def test_indices_are_judged_by_the_value_pointed_at_unless_the_first_is_demanded():
    def argmax(x):
        return x.argmax(-1)

    def pointed(x, indices):
        return x.gather(-1, indices[:, None])[:, 0]

    free = task_of(argmax, outputs=(Output("i", "int64", index="value"),), pointed=pointed)
    first = task_of(argmax, outputs=(Output("i", "int64", index="first"),))
    for task, tie in ((free, None), (first, "numerical_mismatch")):
        inputs = inputs_of(task, values={"x": [1.0, 5.0, 5.0, 0.0]}, R=1, N=4)
        assert kind(task, inputs, returned(inputs, np.array([1]))) is None
        assert kind(task, inputs, returned(inputs, np.array([2]))) == tie
        for wrong in (0, 3, 4, -1, 2**62):
            assert kind(task, inputs, returned(inputs, np.array([wrong]))) == "numerical_mismatch", wrong


def test_statistics():
    inputs = inputs_of(COPY, values={"x": [1.0, 2.0, 4.0, "nan"]}, R=1, N=4)
    got = np.array([[1.0, 2.5, 4.0, np.nan]], np.float32)
    result = compare(reference(COPY, inputs), returned(inputs, got), COPY, inputs, policy())
    stats = result.stats
    assert (stats["count"], stats["judged"], stats["exceeding"]) == (4, 4, 1)
    assert (stats["max_abs"], stats["p50_abs"], stats["max_rel"]) == (0.5, 0.0, 0.25)
    assert stats["mean_abs"] == pytest.approx(0.5 / 3)
    assert stats["max_ulp"] == 0.5 / 2**-22
    assert result.worst[0] == {"output": 0, "index": [0, 1], "got": 2.5, "expected": 2.0}
    assert "out[0, 1] is 2.5, expected 2; 1 of 4" in result.message


def test_an_empty_result_is_right():
    task = task_of(lambda x: x.clone(), dims=("R",), tensors=(Tensor("x", (0, "R")),))
    inputs = inputs_of(task)
    assert kind(task, inputs, returned(inputs, np.zeros((0, 4), np.float32))) is None


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(-2, 5), max_size=3),
    dtype=st.sampled_from([*NUMPY, "complex64", "", "float8_e4m3fn"]),
    data=st.binary(max_size=80),
    structure=st.sampled_from(["tensor", "tuple", "None", "", "str"]),
    count=st.integers(0, 2),
    storages=st.lists(st.binary(max_size=300), min_size=1, max_size=2),
)
def test_nothing_that_comes_back_raises(shape, dtype, data, structure, count, storages):
    inputs = inputs_of(COPY)
    output = RawTensor(dtype, tuple(shape), True, "cpu", data)
    buffers = tuple(np.frombuffer(storage, np.uint8) for storage in storages)
    found = kind(COPY, inputs, Outcome("returned", structure, (output,) * count, storages=buffers))
    assert found in FAILURE_KINDS


# --- the reference --------------------------------------------------------------------------------------------------


def test_output_dtypes_follow_the_rules():
    pair = (
        Tensor("x", ("R", "N")),
        Tensor("y", ("N",), dtype="float32"),
        Tensor("i", ("R",), values="index", high="N"),
    )
    keyword = (Keyword("dtype", None, ("torch.float64",)),)
    rules = (Output("a"), Output("b", "promote"), Output("c", "int64"), Output("d", "int64", index="first"))

    def op(x, y, i, dtype=None):
        return x, x + y, i.clone(), i.clone()

    task = task_of(op, pair, outputs=rules, keywords=keyword)
    plain = [quantity.dtype for quantity in reference(task, inputs_of(task, "float16")).outputs]
    assert plain == ["float16", "float32", "int64", "int64"]
    cast = reference(task, inputs_of(task, "float16", keywords={"dtype": "torch.float64"}))
    assert [quantity.dtype for quantity in cast.outputs] == ["float64", "float64", "float64", "int64"]


@pytest.mark.parametrize("part", ["reference", "scale", "in_range", "storage"])
def test_a_tasks_own_error_names_task_function_and_case(part):
    def broken(x):
        raise RuntimeError("no\ngood")

    task = task_of(**{"reference": lambda x: x, part: broken})
    with pytest.raises(
        InfrastructureError, match=rf'test/op: its own `{part}` raised RuntimeError: no good \(case .*"R": 4'
    ):
        reference(task, inputs_of(task))


def test_a_scale_of_the_wrong_shape_is_the_tasks_error():
    task = task_of(lambda x: x, scale=lambda x: torch.ones(7))
    with pytest.raises(InfrastructureError, match="`scale`"):
        reference(task, inputs_of(task))


def test_references_are_computed_once_and_bounded():
    calls = []

    def counted(x):
        calls.append(1)
        return x.clone()

    task = task_of(counted)
    cache = ReferenceCache(limit=3000)
    small, other = inputs_of(task), inputs_of(task, seed=1)
    assert cache.get(task, small) is cache.get(task, small)
    cache.get(task, other)
    assert len(calls) == 2
    for seed in range(2, 40):
        cache.get(task, inputs_of(task, seed=seed))
    cache.get(task, small)
    assert len(calls) == 41, "the oldest entry had to go"


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 7.0, np.inf]), max_size=60))
def test_the_worst_elements_are_those_of_a_stable_sort(excess: list[float]):
    values = np.array(excess)
    whole = np.argsort(-values, kind="stable")[:WORST]
    assert _largest(values, WORST).tolist() == whole.tolist()
