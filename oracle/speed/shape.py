"""The inputs that a task is timed on, and the order in which they are varied.

The fixed shapes of the naive checks are a few kilobytes: what a clock sees of them is the launch. A task is timed on its
base form, its first dtype and default keywords, at sizes grown from the naive ones until the inputs have 4 to 8 million
elements (32 MiB of float32 at most): there a kernel that only moves memory takes some 10 µs on a large GPU.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

from oracle.case import Case
from oracle.schema import Form, Task

ELEMENTS = 1 << 23  # of all inputs, at most
CHUNKS = 3  # of the repetitions; the last output of each is judged
REPETITIONS, LEAST_IN_CHUNK = 60, 12
WARM_UP = 5  # repetitions at the start of each chunk that do not count


def timed_dims(task: Task) -> dict[str, int]:
    """A size per dim: `Dim.timed` where the task states it; else the naive size, doubled, the smallest first, for the dims
    that stand alone among a tensor's last two."""
    form, dims = task.forms[0], task.naive_dims()
    dims |= {name: dim.timed for name, dim in task.dims.items() if dim.timed is not None}
    last = {entry for tensor in form.tensors for entry in tensor.shape[-2:]}
    growing = [name for name, dim in task.dims.items() if name in last and dim.timed is None]
    while growing:
        name = min(growing, key=dims.__getitem__)
        larger = dims | {name: 2 * dims[name]}
        if _elements(form, larger) <= ELEMENTS:
            dims = larger
        else:
            growing.remove(name)
    return dims


def timed_case(task: Task, seed: int) -> Case:
    form = task.forms[0]
    return Case(task.id, form.name, timed_dims(task), task.dtypes[0], seed=seed, stream="speed")


def schedule() -> list[list[int]]:
    """Per chunk the offset by which each repetition's inputs are renewed, warm-up included. Where a chunk ends, so which
    call is judged, is drawn as well, from the system's entropy: it follows from nothing that a candidate may know."""
    draw = random.SystemRandom()
    cuts = sorted(draw.sample(range(REPETITIONS - CHUNKS * LEAST_IN_CHUNK + CHUNKS - 1), CHUNKS - 1))
    ends = [-1, *cuts, REPETITIONS - CHUNKS * LEAST_IN_CHUNK + CHUNKS - 1]
    lengths = [LEAST_IN_CHUNK + high - low - 1 + WARM_UP for low, high in pairwise(ends)]
    factors = iter(draw.sample(range(1, 4096, 2), sum(lengths)))  # no two repetitions have the same (`shrunk`)
    return [[4096 * draw.randrange(ELEMENTS // 4096) + next(factors) for _ in range(length)] for length in lengths]


def counted(values: Sequence[float]) -> Sequence[float]:
    """A chunk's values without its warm-up; where a slow call was repeated less often, without the first."""
    return values[min(WARM_UP, max(1, len(values) - 3)) :]


def _elements(form: Form, dims: dict[str, int]) -> int:
    return sum(math.prod(tensor.sizes(dims)) for tensor in form.tensors)
