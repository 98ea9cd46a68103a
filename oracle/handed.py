"""Whether memory holds an answer, whatever it lies in: as some elements of a larger tensor, under another dtype, transposed.

Numbers that agree within tolerance one after the other are no coincidence once there are a few different ones; an answer
that is an input moved, expanded or cast says nothing, since host code may do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
        flat = self.values.reshape(-1)
        return flat.size >= TELLING and bool(np.isfinite(flat).all()) and len(np.unique(flat)) >= TELLING

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
            if size < WINDOW or len(np.unique(self.values)) < DIFFERENT:
                return False
            return any(_placed(read, want, bounds) for want, bounds in self._orders())

    def _in_some_order(self, read: np.ndarray) -> bool:
        order = np.argsort(self.values, axis=None)
        want, bounds = self.values.reshape(-1)[order], self.bounds.reshape(-1)[order]
        return bool(np.all(np.abs(np.sort(read.astype(np.float64)) - want) <= bounds))

    def _orders(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row-major order, that of the last two dims swapped, and that of all dims reversed."""
        yield self.values.reshape(-1), self.bounds.reshape(-1)
        if self.values.ndim > 1:
            yield self.values.swapaxes(-1, -2).reshape(-1), self.bounds.swapaxes(-1, -2).reshape(-1)
        if self.values.ndim > 2:
            yield self.values.T.reshape(-1), self.bounds.T.reshape(-1)


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


def _placed(read: np.ndarray, want: np.ndarray, bounds: np.ndarray) -> bool:
    """Whether `want` occurs as a run of `read`. Three elements that stand out are looked for first."""
    standing_out = np.argsort(-np.abs(want))[:: max(1, want.size // 3)][:3]
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
    return np.abs(read - read.dtype.type(want)) <= 1.01 * bound + 1e-6 * abs(want)
