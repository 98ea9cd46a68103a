"""The seven fuzz strategies of the seed paper's companion on input generation, over a task's published schema.

`default`          published sizes, uniform in [-10, 10)
`boundary`         as default, H in {1, 3, 7}
`regular`          as default, H in {128, 256, 512}
`nan_injected`     as default, each element NaN, Inf, -Inf or 0 with probability 5%
`adversarial`      as default in size, five equal buckets of values: zeros; tiny and subnormal; max/10; uniform in
                   [-1000, 1000); non-finite
`single_dtype_f32` default, float32 only
`single_dtype_f16` default, float16 only
H is the dim of that name; where a schema has none, the dim that is reduced.
"""

from __future__ import annotations

from oracle.case import Case
from oracle.errors import UsageError
from oracle.proposals import main_dim
from oracle.rng import Draws
from oracle.schema import Task

SIZES: dict[str, tuple[int, ...]] = {"boundary": (1, 3, 7), "regular": (128, 256, 512)}
BUCKETS = ("zeros", "tiny", "max_over_10", "uniform_1e3", "nan_injected")
ONLY = {"single_dtype_f32": "float32", "single_dtype_f16": "float16"}
STRATEGIES = ("default", "boundary", "regular", "nan_injected", "adversarial", *ONLY)


def published_cases(task: Task, strategy: str, seed: int, count: int, dtype: str) -> list[Case]:
    """`count` cases of one strategy and dtype; none where the strategy or the schema leaves the dtype out.

    Raises UsageError for an unknown strategy and for a task without a published schema.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"strategy {strategy!r}: must be one of {', '.join(STRATEGIES)}")
    if task.published is None:
        raise UsageError(f"{task.id} has no published schema; tasks of suite seed have one")
    if dtype not in task.published.dtypes or ONLY.get(strategy, dtype) != dtype:
        return []
    return [_case(task, strategy, seed, index, dtype) for index in range(count)]


def _case(task: Task, strategy: str, seed: int, index: int, dtype: str) -> Case:
    assert task.published is not None
    draws = Draws("strategy", seed, task.id, strategy, dtype, index)
    dims = task.base_dims() | {name: draws.pick(sizes) for name, sizes in task.published.dims.items()}
    if strategy in SIZES:
        dims["H" if "H" in dims else main_dim(task)] = draws.pick(SIZES[strategy])
    regime = {"nan_injected": "nan_injected", "adversarial": BUCKETS[index % 5]}.get(strategy, "published")
    return Case(
        task.id, task.forms[0].name, dims, dtype, "contiguous", regime, {}, f"published/{strategy}", seed, index
    )
