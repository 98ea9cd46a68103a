"""The shrinker of sizes that keeps values: what is left over at either end of a dim goes."""

from __future__ import annotations

from collections.abc import Generator
from math import gcd

import numpy as np

from oracle.case import Case
from oracle.errors import UsageError
from oracle.minimize.base import Candidates, Shrinker
from oracle.minimize.values import ELEMENT_LIMIT, drawn, elements

DRAWN_LIMIT = 1 << 18  # elements that are drawn to keep a part of them


class Trim(Shrinker):
    """A part of each dim, the values that stay being those of the case: its last or first element, else halves for as
    long as one fails, else the shortest beginning that does.

    `Dims` draws new values for every size, so that a fault of rare values is lost on its way; here it is not.
    """

    def candidates(self, case: Case) -> Candidates:
        for name in sorted(case.dims, key=lambda name: (-case.dims[name], name)):
            case = yield from self._narrowed(case, name)

    def _narrowed(self, case: Case, name: str) -> Generator[Case, bool, Case]:
        step = gcd(self.task.dims[name].base, *self.task.dims[name].values)
        case = yield from self._either_end(case, name, step)
        while (size := case.dims[name]) > step:
            half = -(-size // (2 * step)) * step
            case = yield from self._either_end(case, name, half)
            if case.dims[name] == size:
                return (yield from self._shortest(case, name, half, step))
        return case

    def _either_end(self, case: Case, name: str, kept: int) -> Generator[Case, bool, Case]:
        for part in (slice(-kept, None), slice(kept)):
            smaller = self._part(case, name, part, kept) if kept < case.dims[name] else None
            if smaller is not None and (yield smaller):
                return smaller
        return case

    def _shortest(self, case: Case, name: str, low: int, step: int) -> Generator[Case, bool, Case]:
        """Bisects the length of a beginning between `low`, which passes, and the whole."""
        passing, failing = low // step, case.dims[name] // step
        whole = case
        while failing - passing > 1:
            middle = (passing + failing) // 2
            smaller = self._part(whole, name, slice(middle * step), middle * step)
            if smaller is not None and (yield smaller):
                case, failing = smaller, middle
            else:
                passing = middle
        return case

    def _part(self, case: Case, name: str, part: slice, kept: int) -> Case | None:
        """The case with a part of one dim; None where a shape only computes with that dim, no tensor has it, or the part
        is too large to be written out."""
        tensors = [tensor for tensor in self.task.form(case.form).tensors if tensor.values != "out"]
        dims = {**case.dims, name: kept}
        smaller = case.with_(dims=dims)
        if elements(self.task, case) > DRAWN_LIMIT or elements(self.task, smaller) > ELEMENT_LIMIT:
            return None
        entries = {entry for tensor in tensors for entry in tensor.shape if isinstance(entry, str)}
        if name not in entries or any(name in entry for entry in entries - {name}):
            return None
        try:
            values = dict(case.values) if case.values is not None else drawn(self.task, case)
        except UsageError:
            return None
        for tensor in tensors:
            array = np.array(values[tensor.name], dtype=object).reshape(tensor.sizes(case.dims))
            for axis, entry in enumerate(tensor.shape):
                if entry == name:
                    array = array[(slice(None),) * axis + (part,)]
            values[tensor.name] = array.reshape(-1).tolist()
        return smaller.with_(values=values)
