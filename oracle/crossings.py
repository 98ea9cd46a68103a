"""Crossings: two things changed at once that some faults need together.

A kernel may read strides right where a row fits one block and wrong beyond it, or keep its maximum right until a whole
block is −inf. Pairs like these are proposed in the half types, whose places the single changes do not fill; each half type
takes its turn, so that two of them see different pairs. Faults of this kind rarely hang on the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oracle.inputs import of_tensor
from oracle.schema import Form

if TYPE_CHECKING:
    from oracle.proposals import Proposer

LAYOUTS = ("transposed", "strided", "sliced", "expanded", "offset")  # by what they reveal at higher ranks
FAR_LIMIT = 8193  # largest size of the main dim that is taken as far beyond one block

# Regimes whose faults need several blocks of a row, regimes that need an uncommon keyword, and those that layouts hide in.
ALONG_ROWS = (
    *("infinite_rows", "masked_rows", "far_negative", "sorted", "moderate_large", "spread", "outlier", "one_nan"),
    *("offset", "ties", "nonfinite", "large"),
)
WITH_KEYWORDS = ("small", "zeros", "nonfinite", "negative", "far_negative", "masked_rows", "tiny", "infinite_rows")
IN_LAYOUTS = ("moderate_large", "spread", "masked_rows", "outlier", "large", "nonfinite")


class Crossings:
    """Proposes the crossings of one half type; `turn` 0 or 1 picks among alternatives."""

    def __init__(self, proposer: Proposer, dtype: str, turn: int) -> None:
        self.p, self.dtype, self.turn = proposer, dtype, turn
        self.layouts = [name for name in LAYOUTS if name in proposer.task.layouts]

    def all(self) -> None:
        self.destinations()
        self.forms()
        self.regimes()
        self.keywords()
        self.empty()
        self.places()

    def add(self, form: Form | None = None, dims: dict[str, int] | None = None, **changed: Any) -> None:
        self.p.add(form, dims, dtype=self.dtype, **changed)

    def forms(self) -> None:
        """Ways to call the operator in which the result's dtype may go astray; the widest sizes at once."""
        for form in self.p.task.forms[1:]:
            if form.tier == "dtypes" or self.number(form):
                self.add(form)
        if self.turn == 0:
            self.add(dims=self.p.widest())

    def number(self, form: Form) -> bool:
        """True for a number in a tensor's place: the result must keep the other tensor's dtype."""
        return any(
            keyword.positional and keyword.default is None and keyword.name in form.keywords
            for keyword in self.p.task.keywords
        )

    def destinations(self) -> None:
        """A destination alone in a layout of its own: it must be written where it lies."""
        for form in self.p.task.forms[1:]:
            for tensor in form.tensors:
                if self.layouts and tensor.values == "out":
                    self.add(form, layout=f"{self.layouts[self.turn % len(self.layouts)]}:{tensor.name}")

    def regimes(self) -> None:
        """Values along rows of several blocks, then in an uncommon layout."""
        known = self.known(ALONG_ROWS)
        for regime in known[self.turn :: 2][:4]:
            if far := self.far():
                self.p.regime(regime, alone=True, dims=far, dtype=self.dtype)

    def keywords(self) -> None:
        """Keywords with a short main dim under long others, with layouts, and with values that make them matter."""
        options = self.p.shuffled(self.p.base_keywords())
        for name, value in options[:1]:
            self.add(dims=self.p.widest(short=True), keywords={name: value})
        for place, (name, value) in enumerate(options[:2]):
            layout = self.layouts[(self.turn + place) % len(self.layouts)] if self.layouts else "contiguous"
            self.add(dims=self.p.mixed(self.p.form), keywords={name: value}, layout=layout)
        known = self.known(WITH_KEYWORDS)
        for place, (name, value) in enumerate(options[:3]):
            numeric = isinstance(value, float) and "small" in known
            if known:
                regime = "small" if numeric else known[(self.turn + 2 * place) % len(known)]
                self.add(keywords={name: value}, regime=regime)

    def empty(self) -> None:
        names = [name for name in self.p.used() if self.p.task.dims[name].empty]
        if names:
            self.add(dims={names[self.turn % len(names)]: 0})

    def places(self) -> None:
        """Layouts of higher ranks, of long rows, and of values that a wrong address would not survive."""
        for form in self.p.task.forms[1:]:
            if self.layouts and any(len(tensor.shape) > 2 for tensor in form.tensors):
                known = [name for name in ("transposed", "expanded") if name in self.layouts] or self.layouts
                self.add(form, layout=known[self.turn % len(known)])
        if self.layouts and (far := self.far()):
            self.add(dims=far, layout=self.layouts[self.turn % len(self.layouts)])
        for place, regime in enumerate(self.known(IN_LAYOUTS)[self.turn :: 2][:2]):
            if self.layouts:
                self.add(
                    dims=self.p.mixed(self.p.form), layout=self.layouts[(place + 1) % len(self.layouts)], regime=regime
                )

    def known(self, regimes: Sequence[str]) -> list[str]:
        """Those of these regimes that the task is judged with, on all tensors."""
        stated = {of_tensor(regime)[0] for regime in self.p.task.regimes}
        return [regime for regime in regimes if regime in stated]

    def far(self) -> dict[str, int] | None:
        """The main dim at its largest uneven size up to FAR_LIMIT that fits (blocks of 4096 are in use, and what one
        holds the next may lose), in few rows if such fit. None where no size beyond base fits."""
        dim = self.p.task.dims[self.p.main]
        sizes = [n for n in sorted(dim.values, reverse=True) if dim.base < n <= FAR_LIMIT and n & (n - 1)]
        choices = [{**rows, self.p.main: n} for rows in (self.p.few_rows(), {}) for n in sizes]
        return next((dims for dims in choices if self.p.fits(self.p.form, {**self.p.base.dims, **dims})), None)
