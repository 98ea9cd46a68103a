"""Maximum over the last dim, NaN carried on."""

from oracle.schema import Task

from ._common import DIMS, LANES, LAYOUTS, NONFINITE, OUTPUT, ROW, RULES, X, row_forms


def max(x):
    return x.amax(-1)


TASK = Task(
    suite="ops",
    name="max",
    signature="max(x)",
    contract=f"""Maximum of x over its last dimension: values only, no indices.
{X} {ROW} x's dtype.
{RULES}
The result is exact. A row with a NaN gives NaN; infinities count as numbers.""",
    dims=DIMS,
    forms=row_forms(),
    reference=max,
    outputs=OUTPUT,
    regimes=(
        "normal",
        "far_negative",
        "lowest",
        *NONFINITE,
        "infinite_rows",
        "sorted",
        "outlier",
        "ties",
        "large",
        "tiny",
        "constant_rows",
    ),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "tl.max ignores NaN: look for NaN as well.",
        "Load lanes past the end as −inf, not 0: all values of a row may be negative.",
        LANES,
    ),
)
