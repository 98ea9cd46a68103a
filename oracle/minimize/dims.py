"""The shrinker of sizes: all minimal at once, else each alone, else the smallest failing size by bisection."""

from __future__ import annotations

from math import gcd

from oracle.case import Case
from oracle.minimize.base import Candidates, Shrinker
from oracle.minimize.values import ELEMENT_LIMIT, elements


class Dims(Shrinker):
    """Any size is tried, not only the task's own, but only multiples of what divides all of those (an even head size)."""

    def candidates(self, case: Case) -> Candidates:
        least = {name: min(size, self._step(name)) for name, size in case.dims.items()}
        if case.dims == least or (yield case.with_(dims=least, values=None)):
            return
        stuck = []
        for name in sorted(case.dims, key=lambda name: (-case.dims[name], name)):
            if case.dims[name] == least[name]:
                continue
            smaller = _resized(case, name, least[name])
            if (yield smaller):
                case = smaller
            else:
                stuck.append(name)
        for name in stuck:
            case = yield from self._smallest(case, name)

    def _values_matter(self, case: Case) -> bool:
        """Whether `Trim` is better at what is left: it keeps values, but has to write them out."""
        return case.regime != "zeros" and elements(self.task, case) <= ELEMENT_LIMIT

    def _step(self, name: str) -> int:
        dim = self.task.dims[name]
        return gcd(dim.base, *dim.values)

    def _smallest(self, case: Case, name: str):
        """Bisect one size between the minimal one, which passes, and the case's own.

        Faults begin past a small number or past a power of two (a block): bisecting over such sizes and then asking
        for the size below takes far fewer executions than bisecting over all sizes.
        """
        step, high = self._step(name), case.dims[name]
        likely = sorted({2 * step, 3 * step} | {_ceil((1 << power) + 1, step) for power in range(2, 24)})
        sizes = [step, *(size for size in likely if step < size < high), high]
        low, top = 0, len(sizes) - 1  # sizes[low] passes, sizes[top] fails
        for place in (1, 2):  # most faults that need a size at all need no more than these
            if place < top:
                if (yield _resized(case, name, sizes[place])):
                    top = place
                    break
                low = place
        while top - low > 1:
            middle = (low + top) // 2
            if (yield _resized(case, name, sizes[middle])):
                top = middle
            else:
                low = middle
        passing, failing = sizes[low] // step, sizes[top] // step
        found = _resized(case, name, sizes[top])
        if failing * step != sizes[top] or self._values_matter(found):
            return found
        ask = failing - 1
        while failing - passing > 1:
            if (yield _resized(case, name, ask * step)):
                failing = ask
            else:
                passing = ask
            ask = (passing + failing) // 2
        return _resized(case, name, failing * step)


def _resized(case: Case, name: str, size: int) -> Case:
    return case.with_(dims={**case.dims, name: size}, values=None)


def _ceil(size: int, step: int) -> int:
    return -(-size // step) * step
