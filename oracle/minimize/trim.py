"""The shrinker of sizes under explicit values: what is left over at either end of a dim goes."""

from __future__ import annotations

from math import gcd

import numpy as np

from oracle.case import Case
from oracle.minimize.base import Candidates, Shrinker


class Trim(Shrinker):
    """The first or last part of each dim, the smallest first; the values that stay are those of the case.

    `Dims` draws new values for every size, so that a fault of rare values can be lost on its way; here it is not.
    """

    def candidates(self, case: Case) -> Candidates:
        if case.values is None:
            return
        for name in sorted(case.dims, key=lambda name: (-case.dims[name], name)):
            size = case.dims[name]
            step = gcd(self.task.dims[name].base, *self.task.dims[name].values)
            for kept in sorted({step, size // 2 // step * step} - {0}):
                if kept < size:
                    for part in (slice(-kept, None), slice(kept)):
                        trimmed = self._trimmed(case, name, part, kept)
                        if trimmed is not None and (yield trimmed):
                            case = trimmed
                            break
                    if case.dims[name] == kept:
                        break

    def _trimmed(self, case: Case, name: str, part: slice, kept: int) -> Case | None:
        """The case with a part of one dim; None where a shape only computes with that dim or has no such axis."""
        values = dict(case.values or {})
        for tensor in self.task.form(case.form).tensors:
            if tensor.name not in values:
                continue
            if any(isinstance(entry, str) and entry != name and name in entry for entry in tensor.shape):
                return None
            array = np.array(values[tensor.name], dtype=object).reshape(tensor.sizes(case.dims))
            for axis, entry in enumerate(tensor.shape):
                if entry == name:
                    array = array[(slice(None),) * axis + (part,)]
            values[tensor.name] = array.reshape(-1).tolist()
        return case.with_(dims={**case.dims, name: kept}, values=values)
