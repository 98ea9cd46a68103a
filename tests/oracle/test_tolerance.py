"""Right implementations, however built, stay within tolerance; imprecise and empty ones do not."""

import json

import numpy as np
import pytest
from answers import inputs_of, task_of
from implementations import GENERIC, RIGHT, WRONG, cases, cut, judge, matmul, regimes, run, tasks

from oracle import tolerance
from oracle.dtypes import FLOATS, NUMPY
from oracle.errors import UsageError
from oracle.reference import reference
from oracle.schema import Output, Published
from oracle.tolerance import calibrate, check_covered, policy

TASKS = tasks()
HALVES = ("float16", "bfloat16")


def implementations(group, dtypes=tuple(FLOATS)[1:]):
    return [
        pytest.param(op, name, dtype, id=f"{op}-{name}-{dtype}")
        for op, members in group.items()
        for name in members
        for dtype in dtypes
        if dtype in HALVES or not ("half" in name or "rounded" in name)
    ]


@pytest.mark.parametrize(("op", "name", "dtype"), implementations(RIGHT))
def test_right_implementations_pass(op, name, dtype):
    """In every finite regime, size 1 included; except that weights rounded to float16 are lost below its range."""
    task = TASKS[op]
    chosen = [regime for regime in regimes(task) if not ("rounded" in name and regime == "uniform_1e3")]
    for inputs in cases(task, dtype, (1, 3, 257, 1025), chosen):
        right, ratio = judge(task, inputs, run(RIGHT[op][name], inputs))
        assert right, (inputs.case, ratio)


@pytest.mark.parametrize("op", ["sum", "cumsum", "rms_norm", "layer_norm", "softmax"])
def test_long_sums_of_equal_terms_pass_in_any_order(op):
    for inputs in cases(TASKS[op], "float32", (4097, 16385), ("constant_rows",)):
        right, ratio = judge(TASKS[op], inputs, run(RIGHT[op]["sequential"], inputs))
        assert right, (inputs.case, ratio)


@pytest.mark.parametrize(("op", "name", "dtype"), implementations(WRONG))
def test_wrong_implementations_fail(op, name, dtype):
    """`eps missing` shows where the deviation is small, the others with plain values."""
    task, regime = TASKS[op], "small" if name == "eps missing" else "uniform"
    (inputs,) = cases(task, dtype, (1025,), (regime,))
    assert not judge(task, inputs, run(WRONG[op][name], inputs))[0]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_products_accumulated_in_half_fail(dtype, size):
    for name in ("sum in half", "blocks in half"):
        for inputs in cases(GENERIC["matmul"], dtype, (size,), ("uniform", "normal")):
            assert not judge(GENERIC["matmul"], inputs, run(WRONG["matmul"][name], inputs))[0], (name, inputs.case)


@pytest.mark.parametrize(
    ("op", "bits"),
    [(op, bits) for op in ("softmax", "layer_norm", "rms_norm", "sum") for bits in (7, 10, 12)]
    + [(op, bits) for op in ("sigmoid", "gelu", "silu") for bits in (7, 10, 16, 18)],
)
def test_float32_results_with_fewer_bits_fail(op, bits):
    """Of bfloat16 (7), of TF32 and float16 (10), and some more; a reduction may lose more than its own last bits."""
    (inputs,) = cases(TASKS[op], "float32", (64,), ("uniform",))
    right = run(next(iter(RIGHT[op].values())), inputs)
    assert judge(TASKS[op], inputs, right)[0]
    assert not judge(TASKS[op], inputs, cut(right, bits))[0]


def test_tf32_products_pass_on_cuda_alone():
    task = GENERIC["matmul"]
    for inputs in cases(task, "float32", (64, 257, 1025), ("uniform", "normal", "half_sum")):
        got = run(lambda a, b, h: matmul(cut(a, 10), cut(b, 10)), inputs)
        assert judge(task, inputs, got, backend="cuda")[0]
        assert not judge(task, inputs, 0 * got, backend="cuda")[0]
        if inputs.case.regime != "half_sum":
            assert not judge(task, inputs, got, backend="interpreter")[0]


def test_integers_are_exact():
    task = task_of(lambda x: (x > 0).sum(-1), outputs=(Output(dtype="int64"),))
    inputs = inputs_of(task)
    assert not policy().bounds(task, inputs, reference(task, inputs).outputs[0]).any()


def bound(name, task, dtype):
    inputs = inputs_of(task, dtype)
    return float(policy(name).bounds(task, inputs, reference(task, inputs).outputs[0]).max())


def test_paper_gives_the_published_values_and_one_rule_for_the_rest():
    task = task_of(lambda x: x, published=Published({}, atol={"float32": 1e-5, "float16": 2e-2}))
    assert [bound("paper", task, dtype) for dtype in ("float32", "float16", "bfloat16")] == [1e-5, 2e-2, 8 * 2e-2]
    with pytest.raises(UsageError, match="test/op has no published tolerance"):
        bound("paper", task_of(lambda x: x), "float32")


def test_calibrated_is_the_published_procedure(tmp_path, monkeypatch):
    file = tmp_path / "calibrated.json"
    monkeypatch.setattr(tolerance, "CALIBRATED_FILE", file)
    task = task_of(lambda x: x)
    with pytest.raises(UsageError, match="agentloop validate"):
        bound("calibrated", task, "float32")
    errors = np.linspace(0, 1, 101)
    file.write_text(json.dumps(calibrate({("test/op", "float32"): [*errors, np.nan], ("other", "float16"): []})))
    assert bound("calibrated", task, "float32") == pytest.approx(0.95 * 1.5)
    with pytest.raises(UsageError, match="float16"):
        bound("calibrated", task, "float16")
    file.write_text("{")
    with pytest.raises(UsageError, match="not a calibration file"):
        bound("calibrated", task, "float32")


def test_an_unknown_policy_names_the_others():
    with pytest.raises(UsageError, match="derived, paper, calibrated"):
        policy("loose")


@pytest.mark.parametrize("dtype", HALVES)
def test_a_scale_that_is_not_finite_grants_nothing(dtype):
    task = task_of(lambda x: x / 2, scale=lambda x: x * float("inf"))
    inputs = inputs_of(task, dtype, values={"x": [2.0, 0.0, -4.0, 8.0]}, R=1, N=4)
    assert judge(task, inputs, np.array([[1, 0, -2, 4]]).astype(NUMPY[dtype]))[0]
    assert not judge(task, inputs, np.array([[1, 0, -2, 5]]).astype(NUMPY[dtype]))[0]


def test_a_policy_without_figures_for_a_task_is_refused_before_anything_is_judged(tmp_path, monkeypatch):
    published = task_of(None, published=Published({}, atol={"float32": 1e-5}))
    check_covered("derived", [published, task_of(None)])
    check_covered("paper", [published])
    with pytest.raises(UsageError, match=r"^--tolerance paper: .* has no published tolerance"):
        check_covered("paper", [published, task_of(None)])
    with pytest.raises(UsageError, match=r"^--tolerance 'x' is unknown"):
        check_covered("x", [])
    monkeypatch.setattr(tolerance, "CALIBRATED_FILE", tmp_path / "calibrated.json")
    with pytest.raises(UsageError, match="nothing is measured yet"):
        check_covered("calibrated", [published])
    every = dict.fromkeys(published.dtypes, 1e-5)
    tolerance.CALIBRATED_FILE.write_text(json.dumps({"atol": {published.id: every}}))
    check_covered("calibrated", [published])
    tolerance.CALIBRATED_FILE.write_text(json.dumps({"atol": {published.id: {"float32": 1e-5}}}))
    with pytest.raises(UsageError, match=r"was measured in float16, bfloat16"):
        check_covered("calibrated", [published])
