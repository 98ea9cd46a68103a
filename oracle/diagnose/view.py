"""What a diagnosis looks at: one wrong tensor beside its reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from oracle.compare import wrong_elements
from oracle.inputs import Inputs
from oracle.reference import Quantity
from oracle.schema import Task
from oracle.tolerance import Policy


@dataclass(frozen=True)
class View:
    """`raw` as the candidate gave it; `wrong` marks the judged elements that the comparison refuses."""

    task: Task
    inputs: Inputs
    quantity: Quantity
    raw: np.ndarray
    wrong: np.ndarray
    tolerance: Policy

    @cached_property
    def got(self) -> np.ndarray:
        return self.raw.astype(np.float64)

    @cached_property
    def want(self) -> np.ndarray:
        return self.quantity.values.astype(np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.quantity.values.shape

    @property
    def all_wrong(self) -> bool:
        return bool((self.wrong == self.quantity.judged).all())

    def matches(self, other: np.ndarray, where: np.ndarray | None = None) -> bool:
        """Whether the result is right if `other` (float64, same shape) is the reference, on all wrong elements, or on
        `where`. The bounds grow with `other`."""
        if other.shape != self.shape:
            return False
        judged = self.wrong if where is None else where
        with np.errstate(invalid="ignore"):
            scale = np.fmax(self.quantity.scale, np.abs(np.where(np.isfinite(other), other, 0.0)))
        substitute = replace(self.quantity, values=other, scale=scale, judged=judged)
        bound = self.tolerance.bounds(self.task, self.inputs, substitute)
        return not wrong_elements(self.raw, substitute, bound).any()

    def dim(self, axis: int) -> str:
        """Name of an axis of this tensor: the task's own if one dim alone has that size and it is not 1."""
        names = [name for name, size in self.inputs.case.dims.items() if size == self.shape[axis] != 1]
        place = "the last dim" if axis == len(self.shape) - 1 else f"dim {axis}"
        return f"{names[0]} ({place})" if len(names) == 1 else place
