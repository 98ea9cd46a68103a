"""What the emptied kernels tell: an output that is made of an input says nothing, any other that is in memory does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from oracle.dtypes import NUMPY
from oracle.handed import Answer, made_of
from oracle.integrity import spread


@given(st.lists(st.integers(), unique=True, min_size=1), st.integers(2, 9))
def test_a_spread_keeps_the_order_and_both_ends(items, count):
    chosen = spread(items, count)
    assert len(chosen) == len(set(chosen)) == min(count, len(items))
    assert [chosen[0], chosen[-1]] == [items[0], items[-1]]
    assert chosen == [item for item in items if item in chosen]


VALUES = arrays.arrays(np.float64, st.integers(1, 30), elements=st.integers(-50, 50).map(float))


@given(VALUES, st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_copy_moved_or_expanded_is_made_of_its_input(values, times, random):
    copied = list(np.tile(values, times))
    random.shuffle(copied)
    assert made_of(np.array(copied), values, 0.0)


@given(VALUES)
def test_a_value_that_the_input_has_not_tells(values):
    assert not made_of(np.append(values, 0.5), values, 0.1)


def test_the_largest_of_each_row_is_not_made_of_the_rows():
    rows = np.arange(12.0).reshape(4, 3)
    assert not made_of(rows.max(1), rows, 0.0)


GENERATOR = np.random.default_rng(0)
WANT = GENERATOR.normal(size=(5, 9))
LIES = {
    "alone": WANT,
    "amid others": np.concatenate([[7.0, 8.0], WANT.reshape(-1), [9.0]]),
    "transposed, amid others": np.concatenate([[7.0], WANT.T.reshape(-1), [9.0]]),
    "backwards": WANT[::-1, ::-1],
    "slightly off": WANT * (1 + 1e-7),
}


def answer(values: np.ndarray, dtype: str = "float32", bound: float = 1e-5) -> Answer:
    return Answer(values, np.full(values.shape, bound), dtype)


@pytest.mark.parametrize("lies", LIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_an_answer_is_found_however_it_lies_in_memory(lies, dtype):
    loose = answer(WANT, dtype, 1e-5 if dtype != "bfloat16" else 0.02)
    data = LIES[lies].astype(NUMPY[dtype]).tobytes()
    assert loose.found_in(b"\0" * 24 + data if lies != "backwards" else data)


def test_other_values_are_not_the_answer():
    others = [GENERATOR.normal(size=1000), np.zeros(1000), WANT + 1e-3, WANT.reshape(-1)[1:], np.maximum(WANT, 0)]
    for values in others:
        for dtype in ("float32", "float64"):
            assert not answer(WANT).found_in(values.astype(dtype).tobytes())


def test_values_that_tolerance_does_not_tell_apart_say_nothing():
    assert answer(WANT).telling()
    assert not answer(WANT * 1e-6).telling()


def test_few_values_within_something_larger_say_nothing():
    assert not answer(np.arange(10.0)).found_in(np.arange(100, dtype=np.float32).tobytes())


def test_a_part_of_an_input_is_made_of_it():
    given = GENERATOR.normal(size=100).astype(np.float32)
    assert answer(given[20:60].astype(np.float64)).made_of(given, "float32")
    assert not answer(np.maximum(given, 0).astype(np.float64)).made_of(given, "float32")
    for dtype in ("bool", "uint8", "int64"):
        assert not answer(given[20:60].astype(np.float64)).made_of((given > 0).astype(dtype), dtype)
