"""What the emptied kernels tell: an output that is made of an input says nothing, any other that a kernel is given does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from oracle.handed import made_of

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
