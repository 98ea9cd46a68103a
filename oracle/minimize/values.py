"""The shrinker of values: the drawn values become explicit ones, then as few and as simple as the failure allows."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import prod
from typing import Any, TypeAlias

import numpy as np

from oracle.case import Case
from oracle.compare import plain
from oracle.errors import UsageError
from oracle.inputs import build
from oracle.minimize.base import Candidates, Shrinker
from oracle.schema import Task

ELEMENT_LIMIT = 1024  # of all tensors: more is neither readable nor quick

Arrays: TypeAlias = dict[str, list[Any]]
Steps: TypeAlias = Generator[Case, bool, Arrays]


class Values(Shrinker):
    """Whole tensors to one plain value, then halves, quarters … of what is left, then single elements to small integers.

    The plain values are 1 and, where the task is judged with zeros, 0 before it. Destination arguments stay as they are.
    """

    def candidates(self, case: Case) -> Candidates:
        try:
            arrays = drawn(self.task, case)
        except UsageError:
            return
        if not 0 < sum(map(len, arrays.values())) <= ELEMENT_LIMIT:
            return
        for fill in self._fills():
            if len(arrays) > 1:
                plainest = {name: _plainest(fill, flat) for name, flat in arrays.items()}
                if plainest == arrays or (yield case.with_(values=plainest)):
                    arrays = plainest
                    break
        for name in arrays:
            arrays = yield from self._tensor(case, arrays, name)
        for name in arrays:
            arrays = yield from self._elements(case, arrays, name)

    def _fills(self) -> tuple[int, ...]:
        return (0, 1) if "zeros" in self.task.regimes else (1,)

    def _tensor(self, case: Case, arrays: Arrays, name: str) -> Steps:
        """One tensor to one value throughout, else ever smaller parts of it."""
        for fill in self._fills():
            trial = {**arrays, name: _plainest(fill, arrays[name])}
            if trial == arrays or (yield case.with_(values=trial)):
                return trial
        part = (len(arrays[name]) + 1) // 2
        while part > 1:
            for start in range(0, len(arrays[name]), part):
                places = [p for p in range(len(arrays[name]))[start : start + part] if not _simple(arrays[name][p])]
                for fill in self._fills() if places else ():
                    trial = _with(arrays, name, places, fill)
                    if (yield case.with_(values=trial)):
                        arrays = trial
                        break
            part = (part + 1) // 2
        return arrays

    def _elements(self, case: Case, arrays: Arrays, name: str) -> Steps:
        """Each element that is not plain yet to the simplest value that still fails."""
        for place, value in enumerate(arrays[name]):
            for fill in self._simpler(value):
                trial = _with(arrays, name, [place], fill)
                if (yield case.with_(values=trial)):
                    arrays = trial
                    break
        return arrays

    def _simpler(self, value: Any) -> Iterator[Any]:
        """Simpler values to put in an element's place, simplest first."""
        if isinstance(value, bool) or _simple(value):
            return
        yield from self._fills()
        if isinstance(value, float) and np.isfinite(value):
            power = float(np.copysign(2.0 ** np.rint(np.log2(abs(value))), value)) if value else value
            for whole in dict.fromkeys((-1.0, float(np.rint(value)), power)):
                if _exact(whole) and _rank(whole) < _rank(value):
                    yield whole


def elements(task: Task, case: Case) -> int:
    """How many values the case's tensors hold, destination arguments left out."""
    tensors = task.form(case.form).tensors
    return sum(prod(tensor.sizes(case.dims)) for tensor in tensors if tensor.values != "out")


def drawn(task: Task, case: Case) -> Arrays:
    """The values of a case as explicit ones, destination arguments left out. Raises UsageError as `build`."""
    inputs = build(task, case)
    given = {tensor.name for tensor in inputs.form.tensors if tensor.values != "out"}
    return {
        buffer.name: [plain(value) for value in buffer.values().reshape(-1)]
        for buffer in inputs.tensors
        if buffer.name in given
    }


def _with(arrays: Arrays, name: str, places: Any, fill: Any) -> Arrays:
    flat = list(arrays[name])
    for place in places:
        flat[place] = _like(fill, flat)
    return {**arrays, name: flat}


def _plainest(fill: int, flat: list[Any]) -> list[Any]:
    """The tensor filled with one plain value; a mask hides nothing."""
    masked = bool(flat) and isinstance(flat[0], bool)
    return [True if masked else _like(fill, flat)] * len(flat)


def _like(fill: Any, flat: list[Any]) -> Any:
    """The fill in the kind of the tensor's own values: bool, int or float."""
    kind = next((type(value) for value in flat if not isinstance(value, str)), float)
    return kind(fill)


def _simple(value: Any) -> bool:
    return value in (0, 1)


def _exact(value: float) -> bool:
    """Whether every dtype holds the value: few bits, and not beyond float16 unless it is a power of two."""
    mantissa, _ = np.frexp(abs(value))
    return float(mantissa * 2**8).is_integer()


def _rank(value: Any) -> tuple[bool, float, float]:
    """Order of simplicity: 0, 1, −1, further whole numbers (powers of two first from 256 on), fractions, non-finite."""
    if isinstance(value, str):
        return (True, np.inf, np.inf)
    size = abs(value) + (0.5 if value < 0 else 0.0)
    round_number = size < 2**8 or np.frexp(abs(value))[0] == 0.5
    return (value != int(value), 0.0 if round_number else 1.0, size)
