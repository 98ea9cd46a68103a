"""Whether memory holds an answer, whatever it lies in: as some elements of a larger tensor, under another dtype, transposed.

Numbers that agree within tolerance one after the other are no coincidence once there are a few different ones; an answer
that is an input moved, expanded or cast says nothing, since host code may do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oracle.dtypes import FLOATS, NUMPY

TELLING = 4  # elements, so many of them different, from which a tensor of just this size is no coincidence
WINDOW, DIFFERENT = 16, 8  # the same for a place within something larger
PLACES = 256  # looked at, of those where three elements agree


@dataclass(frozen=True)
class Answer:
    """An output as it must be, how far each element may be off, and its dtype."""

    values: np.ndarray
    bounds: np.ndarray
    dtype: str

    def telling(self) -> bool:
        return self.values.size >= TELLING and bool(np.isfinite(self.values).all()) and self._different >= TELLING

    @cached_property
    def _different(self) -> int:
        """Values that tolerance tells apart."""
        step = 2 * self.bounds.max()
        return len(np.unique(np.round(self.values / step) if step else self.values))

    def made_of(self, given: np.ndarray, dtype: str) -> bool:
        """Whether host code may have made it of an input."""
        return made_of(self.values.reshape(-1), given, self.bounds.max()) or self.found_in(given.tobytes(), (dtype,))

    def found_in(self, data: bytes, dtypes: tuple[str, ...] = ()) -> bool:
        """Whether the bytes hold it under its own dtype or a wider one."""
        wider = ("float32", "float64") if self.dtype in FLOATS else ("int32", "int64", "float32")
        return any(self._within(_read(data, name)) for name in dtypes or dict.fromkeys((self.dtype, *wider)))

    def _within(self, read: np.ndarray) -> bool:
        size = self.values.size
        if read.size < size:
            return False
        with np.errstate(all="ignore"):
            if read.size == size and self._in_some_order(read):
                return True
            if size < WINDOW or self._different < DIFFERENT:
                return False
            return any(_placed(read, *order) for order in self._orders)

    def _in_some_order(self, read: np.ndarray) -> bool:
        ends = ((np.min, self.values.min()), (np.max, self.values.max()))
        if any(not abs(float(end(read)) - value) <= self.bounds.max() for end, value in ends):
            return False
        order = np.argsort(self.values, axis=None)
        want, bounds = self.values.reshape(-1)[order], self.bounds.reshape(-1)[order]
        return bool(np.all(np.abs(np.sort(read.astype(np.float64)) - want) <= bounds))

    @cached_property
    def _orders(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values, bounds and elements that stand out: in row-major order, in that of the last two dims swapped, and in that
        of all dims reversed."""
        views = [(self.values, self.bounds)]
        if self.values.ndim > 1:
            views.append((self.values.swapaxes(-1, -2), self.bounds.swapaxes(-1, -2)))
        if self.values.ndim > 2:
            views.append((self.values.T, self.bounds.T))
        flat = [(values.reshape(-1), bounds.reshape(-1)) for values, bounds in views]
        return [(values, bounds, _standing_out(values)) for values, bounds in flat]


def made_of(want: np.ndarray, values: np.ndarray, bound: float) -> bool:
    """Whether an output is an input moved, expanded or cast: as large at least, and without a value that is not near one
    of the input's."""
    if not 0 < values.size <= want.size:
        return False
    given = np.sort(values.reshape(-1).astype(np.float64))
    at = np.searchsorted(given, want)
    below, above = given[np.maximum(at - 1, 0)], given[np.minimum(at, given.size - 1)]
    return bool(np.all(np.minimum(np.abs(want - below), np.abs(want - above)) <= 4 * bound))


def _read(data: bytes, dtype: str) -> np.ndarray:
    """As floats that hold every value of the dtype, or nearly (large integers)."""
    kind = NUMPY[dtype]
    read = np.frombuffer(data, kind, len(data) // kind.itemsize)
    return read if dtype in ("float32", "float64") else read.astype(np.float32 if dtype in FLOATS else np.float64)


def _standing_out(want: np.ndarray) -> np.ndarray:
    """Indices of three large elements: they are not everywhere, as zeros are."""
    some = np.linspace(0, want.size - 1, min(want.size, 1024)).astype(np.int64)
    return some[np.argsort(-np.abs(want[some]))][:3]


def _placed(read: np.ndarray, want: np.ndarray, bounds: np.ndarray, standing_out: np.ndarray) -> bool:
    """Whether `want` occurs as a run of `read`, by the elements that stand out first."""
    first = standing_out[0]
    last = read.size - want.size
    places = np.flatnonzero(_near(read[first : first + last + 1], want[first], bounds[first]))
    for element in standing_out[1:]:
        places = places[_near(read[places + element], want[element], bounds[element])]
    return any(
        bool(np.all(np.abs(read[place : place + want.size].astype(np.float64) - want) <= bounds))
        for place in places[:PLACES]
    )


def _near(read: np.ndarray, want: float, bound: float) -> np.ndarray:
    """Within the bound and what the read dtype's own rounding may add to it."""
    room, of = 1.01 * bound + 1e-6 * abs(want), read.dtype.type
    return (read >= of(want - room)) & (read <= of(want + room))
