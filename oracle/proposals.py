"""Proposals: the cases that could judge a candidate, each a few changes from the base case.

Sizes come from the task's `Dim.values`, so that a case is always one that the task states. The interpreter runs a row
program in 2–3 ms and a matrix tile in 13–30 ms: cases are kept small, with few rows where a row is long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from oracle.case import Case
from oracle.crossings import Crossings
from oracle.dtypes import FLOATS
from oracle.inputs import build, of_tensor, same_json, tensor_dtype
from oracle.rng import Draws
from oracle.schema import Form, Task
from oracle.tiers import base_case, entry_dims, tier_of, used_dims
from oracle.values import REGIMES

ELEMENTS = 80_000  # most elements over all tensors of a case where a dim is summed over: long sums must be seen, …
EACH_ALONE = 16_384  # … where each element stands alone, …
VOLUME, VOLUME_ELEMENTS = 5_000_000, 600_000  # … or, where tensors are multiplied, most products and elements
MIXED, LONG = 0.25, 4.0  # shares of these: several dims at once (many such cases); one long row (few programs)
MIXED_ROWS = 256  # most rows of the former where tensors are not multiplied: a row may be a program
REDRAW_STEP = 1000  # added to the index of a case that is drawn again
SIZE_CLASSES = ("small", "beyond", "long", "one", "blocks", "above", "below", "other")

# Regimes that reveal most, as bug reports tell; a task's others follow in its order.
REVEALING = (
    *("masked_rows", "all_ignored", "none_ignored", "hidden_rows", "hidden_elements", "correlated", "moderate_large"),
    *("one_nan", "negative", "far_negative", "lowest", "offset"),
    *("zeros", "spread", "large", "small", "constant_rows", "nonfinite", "infinite_rows", "outlier", "sorted", "ties"),
)
SIZES_FIRST = (5, 9)  # so many sizes are changed alone before forms take turns with them: fewer where forms are many
MANY, CROWD = 2048, 4096  # most rows where rows are many; where they are counted: more than float16 counts by ones
BATCH = 4  # a dim with a base up to this counts programs: taken at any size where several dims change at once


class Proposer:
    """Proposes the cases of one task, seed and stream. `index` counts proposals, so that every case has its own draws."""

    def __init__(self, task: Task, seed: int, stream: str) -> None:
        self.task = task
        self.base = base_case(task, seed, stream)
        self.form = task.forms[0]
        self.draws = Draws("portfolio", seed, task.id, stream)
        self.main = main_dim(task)
        self.elements = ELEMENTS if task.reduces else EACH_ALONE
        self.halves = [dtype for dtype in task.dtypes if dtype != self.base.dtype]
        self.cases: list[Case] = []
        self.seen: set[str] = set()

    def all(self) -> list[Case]:
        self.add()
        self.shapes()
        for dtype in self.halves:
            self.dtype(dtype)
        self.values()
        self.keywords()
        self.empty()
        self.layouts()
        for turn, dtype in enumerate(self.halves):
            Crossings(self, dtype, turn).all()
        return self.cases

    # One proposal.

    def add(
        self, form: Form | None = None, dims: Mapping[str, int] | None = None, share: float = 1.0, **changed: Any
    ) -> None:
        """Propose base with these changes, unless it repeats an input or its sizes do not fit."""
        form = form or self.form
        sizes = {**self.base.dims, **(dims or {})}
        case = self.base.with_(form=form.name, dims=sizes, index=len(self.cases), **changed)
        shapes = self.fits(form, sizes, share)
        key = json.dumps([form.name, shapes, case.dtype, case.regime, case.layout, dict(case.keywords)], sort_keys=True)
        if shapes is not None and key not in self.seen:
            self.seen.add(key)
            self.cases.append(case.with_(tier=tier_of(self.task, case)))

    def fits(self, form: Form, dims: Mapping[str, int], share: float = 1.0) -> list[tuple[int, ...]] | None:
        """Shapes of the form's tensors, or None if the dims give none or more work than `share` of a case's."""
        try:
            shapes = [tensor.sizes(dims) for tensor in form.tensors]
        except (ValueError, ZeroDivisionError):
            return None
        elements = sum(map(math.prod, shapes))
        volume = math.prod(dims[name] for name in used_dims(self.task, form))
        if self.multiplied(form, dims):
            light = elements <= share * VOLUME_ELEMENTS and volume <= share * VOLUME
        else:
            light = elements <= share * self.elements
        return shapes if light and all(size >= 0 for shape in shapes for size in shape) else None

    def multiplied(self, form: Form, dims: Mapping[str, int]) -> bool:
        """True where the form's tensors span far more index tuples than elements, as in a matrix product."""
        elements = sum(math.prod(tensor.sizes(dims)) for tensor in form.tensors)
        return math.prod(dims[name] for name in used_dims(self.task, form)) > 4 * elements

    def outside(self, case: Case, exclude: frozenset[str]) -> Case | None:
        """The case, or one like it whose input digest is not in `exclude`; None if there is none to be found."""
        for attempt in range(8):
            other = case.with_(index=case.index + REDRAW_STEP * attempt)
            if attempt > 2:
                form = self.task.form(case.form)
                sizes = self.mixed(form, uneven=False)
                keep = {name: size for name, size in case.dims.items() if size == 0}
                other = other.with_(dims={**self.base.dims, **sizes, **keep})
                other = other.with_(tier=tier_of(self.task, other))
                if other.tier != case.tier or self.fits(form, other.dims) is None:
                    continue
            if build(self.task, other).digest not in exclude:
                return other
        return None

    # Sizes.

    def sizes(self, name: str) -> list[int]:
        """Sizes of a dim other than base, one of each class first (drawn within its class), then the rest."""
        dim = self.task.dims[name]
        fitting = [size for size in sorted(set(dim.values) - {dim.base}) if self.fits_with(name, size)]
        classes = [[size for size in fitting if size_class(size) == label] for label in SIZE_CLASSES]
        first = [self.draws.pick(sizes) for sizes in classes if sizes]
        return first + self.shuffled(size for size in fitting if size not in first)

    def ends(self, name: str) -> list[int]:
        """What is tried of a dim that is not the main one: 1, and the largest that fits."""
        sizes = self.sizes(name)
        return list(dict.fromkeys([size for size in sizes if size == 1] + sorted(sizes)[-1:]))

    def fits_with(self, name: str, size: int) -> bool:
        return self.fits(self.form, {**self.base.dims, name: size}) is not None

    def mixed(self, form: Form, uneven: bool = True) -> dict[str, int]:
        """A size for every dim of a form at once, drawn; `uneven`: none a power of two where the dim allows that."""
        names = used_dims(self.task, form)
        for _ in range(32):
            sizes = {name: self.draws.pick(self.options(name, uneven)) for name in names}
            if self.fits(form, {**self.base.dims, **sizes}, MIXED) is not None and not self.many_rows(form, sizes):
                return sizes
        return {}

    def many_rows(self, form: Form, sizes: Mapping[str, int]) -> bool:
        rows = math.prod(size for name, size in sizes.items() if name != self.main)
        return rows > MIXED_ROWS and not self.multiplied(form, {**self.base.dims, **sizes})

    def options(self, name: str, uneven: bool) -> list[int]:
        dim = self.task.dims[name]
        odd = [size for size in dim.values if size & (size - 1)]
        return (odd if uneven and dim.base > BATCH else []) or list(dim.values) or [dim.base]

    def least(self) -> dict[str, int]:
        dims = {name: self.task.dims[name] for name in used_dims(self.task, self.form)}
        return {name: min((*dim.values, dim.base)) for name, dim in dims.items()}

    def few_rows(self) -> dict[str, int]:
        """Every dim but the main one at its largest size up to BATCH; base in a product."""
        if self.multiplied(self.form, self.base.dims):
            return {}
        few = {
            name: [n for n in self.task.dims[name].values if n <= BATCH] for name in self.used() if name != self.main
        }
        return {name: max(sizes) for name, sizes in few.items() if sizes}

    def long(self) -> dict[str, int] | None:
        """The longest main dim, every other dim at its smallest (at base in a product: few programs, many sums to see);
        None where that is within one block of 1024."""
        sizes = [size for size in self.task.dims[self.main].values if size > 1024]
        others = [{}, self.least()] if self.multiplied(self.form, self.base.dims) else [self.least()]
        choices = [{**dims, self.main: size} for size in sorted(sizes, reverse=True) for dims in others]
        return next((dims for dims in choices if self.fits(self.form, {**self.base.dims, **dims}, LONG)), None)

    def lengthens(self, form: Form) -> bool:
        """Whether a form has an axis of the main dim that is of another length than any of the base form."""
        found, known = (
            {entry for tensor in f.tensors for entry in tensor.shape if isinstance(entry, str)}
            for f in (form, self.form)
        )
        return any(self.main in entry_dims(entry) for entry in found - known)

    def widest(self, short: bool = False, most: int = MANY) -> dict[str, int]:
        """Every dim but the main one at its largest up to `most`: many rows, several tiles; the main one as long as fits,
        at most at base, or `short`: its largest small uneven size."""
        used = {name: self.task.dims[name] for name in self.used()}
        dims = {name: max(n for n in (*dim.values, dim.base) if n <= most) for name, dim in used.items()}
        main = self.task.dims[self.main]
        sizes = [main.base, *sorted((size for size in main.values if size < main.base), reverse=True)]
        sizes = [size for size in sizes if size_class(size) == "small"] if short else sizes
        choices = [{**dims, self.main: size} for size in sizes]
        return next((dims for dims in choices if self.fits(self.form, {**self.base.dims, **dims}) is not None), {})

    def used(self) -> list[str]:
        """Dims of the base form."""
        return used_dims(self.task, self.form)

    def base_keywords(self) -> list[tuple[str, Any]]:
        """Keyword values off their defaults in the base form."""
        return keyword_values(self.task, self.form)

    def shuffled(self, items: Iterable[Any]) -> list[Any]:
        left = list(items)
        return [left.pop(self.draws.integer(len(left))) for _ in range(len(left))]

    # Tiers.

    def shapes(self) -> None:
        names = used_dims(self.task, self.form)
        names.sort(key=lambda name: name != self.main)
        lists = [self.sizes(name)[:9] if name == self.main else self.ends(name) for name in names]
        forms = [form for form in self.task.forms[1:] if form.tier == "shapes"]
        turns = zip_longest(*[[(name, size) for size in sizes] for name, sizes in zip(names, lists, strict=True)])
        sizes = [pair for turn in turns for pair in turn if pair]
        first = max(SIZES_FIRST[0], SIZES_FIRST[1] - (len(forms) + 1) // 2)
        for pair in sizes[:first]:
            self.add(dims=dict([pair]))
        for form, pair in zip_longest(forms, sizes[first:]):
            if form:
                self.add(form)
            if pair:
                self.add(dims=dict([pair]))
        for form in self.task.forms[1:]:
            self.add(form)
        self.add(dims=self.mixed(self.form))
        if longest := self.long():
            self.add(dims=longest, share=LONG)
            for form in filter(self.lengthens, forms):
                self.add(form, longest, share=LONG)
        for form in reversed(forms):  # the first ones were tried alone
            self.add(form, self.mixed(form))
        self.add(dims=self.widest())
        self.add(dims=self.least())
        self.add(dims=self.task.naive_dims())
        for form in self.shuffled([self.form, *forms, self.form, *forms, self.form]):
            self.add(form, self.mixed(form, uneven=False))

    def dtype(self, dtype: str) -> None:
        """A half type: base, uneven, beyond one block, long; then one other form."""
        self.add(dtype=dtype)
        self.add(dims=self.mixed(self.form), dtype=dtype)
        beyond = [size for size in self.task.dims[self.main].values if 1024 < size <= 8193 and size & (size - 1)]
        if beyond:
            self.add(dims={self.main: self.draws.pick(beyond)}, dtype=dtype)
        if longest := self.long():
            self.add(dims=longest, share=LONG, dtype=dtype)
        for form in self.shuffled([form for form in self.task.forms[1:] if form.tier == "shapes"])[:1]:
            self.add(form, dtype=dtype)

    def values(self) -> None:
        """Each regime on float32: on one tensor, then on all, then at uneven sizes; then on the half types, the second
        of them at uneven sizes."""
        rank = {name: place for place, name in enumerate(REVEALING)}
        regimes = sorted(self.task.regimes, key=lambda regime: rank.get(of_tensor(regime)[0], len(rank)))
        for regime in regimes:
            self.regime(regime, alone=True)
        for regime in regimes:
            self.regime(regime)
        for regime in self.shuffled(regimes)[:8]:
            self.regime(regime, alone=True, dims=self.mixed(self.form))
        for turn, dtype in enumerate(self.halves):
            if self.task.reduces:
                self.regime("half_sum", dims=self.long(), dtype=dtype)
                self.regime("overflow_f16", dtype=dtype)
            for regime in regimes:
                self.regime(regime, alone=True, dims=self.mixed(self.form) if turn else None, dtype=dtype)

    def regime(
        self, regime: str, alone: bool = False, dims: Mapping[str, int] | None = None, dtype: str | None = None
    ) -> None:
        """Propose a regime where it tells something: on every tensor, or `alone` on one floating tensor: the first where
        nothing else is changed, else any."""
        plain, only = of_tensor(regime)
        dims = self.widest(short=True, most=CROWD) if plain == "none_ignored" else dims
        first = dims is None and dtype is None
        dtype = dtype or self.base.dtype
        floating = [t.name for t in self.form.tensors if t.values != "out" and tensor_dtype(t, dtype) in FLOATS]
        if only and only not in {tensor.name for tensor in self.form.tensors}:
            return
        if alone and not only and REGIMES[plain].alone and len(floating) > 1:
            regime = f"{plain}:{floating[0] if first else self.draws.pick(floating)}"
        if dtype in (REGIMES[plain].dtypes or (dtype,)):
            self.add(dims=dims, share=LONG, dtype=dtype, regime=regime)

    def keywords(self) -> None:
        options = [(form, name, value) for form in self.task.forms for name, value in keyword_values(self.task, form)]
        base = [(form, name, value) for form, name, value in options if form is self.form]
        for form, name, value in base:
            self.add(form, keywords={name: value})
        for form, name, value in self.shuffled(options)[:12]:
            self.add(form, self.mixed(form), keywords={name: value})
        for _ in range(4):
            form = self.draws.pick([form for form, _, _ in options] or [self.form])
            pairs = self.shuffled([(name, value) for f, name, value in options if f is form])
            self.add(form, self.mixed(form), keywords=dict(pairs[:4]))
        for dtype in self.halves:
            for _, name, value in self.shuffled(base)[:3]:
                self.add(keywords={name: value}, dtype=dtype)

    def empty(self) -> None:
        for form in self.task.forms:
            names = [name for name in used_dims(self.task, form) if self.task.dims[name].empty]
            for name in names:
                self.add(form, {name: 0})
            self.add(form, dict.fromkeys(names, 0))

    def layouts(self) -> None:
        layouts = [layout for layout in self.task.layouts if self.has_tensor(self.form, layout)]
        for layout in layouts:
            self.add(layout=layout)
        for layout in self.shuffled(layouts)[:6]:
            self.add(dims=self.mixed(self.form), layout=layout)
        for form in self.task.forms[1:]:
            known = [layout for layout in self.task.layouts if self.has_tensor(form, layout)]
            for layout in self.shuffled(known)[:2]:
                self.add(form, self.mixed(form), layout=layout)
        for dtype in self.halves:
            for layout in self.shuffled(layouts)[:2]:
                self.add(layout=layout, dtype=dtype)

    def has_tensor(self, form: Form, layout: str) -> bool:
        only = of_tensor(layout)[1]
        return only is None or only in {tensor.name for tensor in form.tensors}


def main_dim(task: Task) -> str:
    """The dim whose length matters most: the reduced one, else the one with the largest size (the last of such)."""
    used = used_dims(task, task.forms[0]) or list(task.dims)
    return task.reduces or max(used, key=lambda name: (max((*task.dims[name].values, 0)), used.index(name)))


def size_class(size: int) -> str:
    """What a size probes: 1; small and uneven; one past or short of a power of two (a block); past one
    block of 1024, past several, or a whole number of them."""
    if size == 1:
        return "one"
    if size > 1024:
        return "blocks" if not size & (size - 1) else "beyond" if size < 2048 else "long"
    if size < 10:
        return "small" if size & (size - 1) else "other"
    if not (size - 1) & (size - 2):
        return "above"
    return "below" if not size & (size + 1) else "other"


def keyword_values(task: Task, form: Form) -> list[tuple[str, Any]]:
    """(keyword, value) for every candidate value in a form that is not what the form has anyway; pinned ones have none."""
    found = []
    for keyword in task.keywords:
        if keyword.name not in form.keywords:
            values = form.keyword_values.get(keyword.name, keyword.values)
            found += [(keyword.name, value) for value in values if not same_json(value, keyword.default)]
    return found
