"""Index of the first maximum of the last dim."""

from oracle.schema import Output, Task

from ._common import DIMS, LAYOUTS, NONFINITE, ROW, RULES, X, row_forms


def argmax(x):
    return x.argmax(-1)


TASK = Task(
    suite="ops",
    name="argmax",
    signature="argmax(x)",
    contract=f"""Index of the maximum of x over its last dimension, int64: the first of equal ones. NaN counts as the
maximum (the first NaN, if any).
{X} {ROW} dtype int64.
{RULES}
Infinities count as numbers; a row of nothing but −inf gives 0. 0 and −0 are equal.""",
    dims=DIMS,
    forms=row_forms(),
    reference=argmax,
    outputs=(Output(dtype="int64", index="first", contiguous=True),),
    regimes=(
        "normal",
        "ties",
        "far_negative",
        "lowest",
        *NONFINITE,
        "infinite_rows",
        "sorted",
        "outlier",
        "constant_rows",
        "signed_zeros",
        "zeros",
        "large",
    ),
    layouts=LAYOUTS,
    reduces="N",
    hazards=(
        "The result is int64, also where the kernel computes in int32.",
        "Of equal maxima the first counts, also across blocks: a later block wins only by >.",
        "NaN counts as the maximum; comparisons with NaN are False.",
        "Load lanes past the end as −inf, and let no such lane win where the whole row is −inf.",
    ),
)
