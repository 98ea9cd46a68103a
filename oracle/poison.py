"""Bit patterns that memory holds before anybody has written it, so that a result that depends on it gives itself away.

The candidate's process fills fresh allocations (`POISON`) and the lanes of masked loads without `other` (`LANES`) with
them; the judge recognises them in outputs. Pattern 0 is a NaN with a payload that no arithmetic makes by itself (and a
very negative integer), pattern 1 a large finite number (and a very large integer). The payloads of the float types are
truncations of one another, so that a cast that keeps the leading payload bits keeps the mark.
"""

from __future__ import annotations

import numpy as np

# bits by dtype; a bool has no spare pattern, so that its poison is a value and cannot be recognised
POISON: dict[int, dict[str, int]] = {
    0: {
        "float64": 0x7FFB4B4B4B4B4B4B,
        "float32": 0x7FDA5A5A,
        "float16": 0x7ED2,
        "bfloat16": 0x7FDA,
        "int64": 0xA5A5A5A5A5A5A5A5,
        "int32": 0xA5A5A5A5,
        "int16": 0xA5A5,
        "int8": 0xA5,
        "uint8": 0xA5,
        "bool": 1,
    },
    1: {
        "float64": 0x7A5A5A5A5A5A5A5A,
        "float32": 0x7A5A5A5A,
        "float16": 0x7A5A,
        "bfloat16": 0x7A5A,
        "int64": 0x7A5A5A5A5A5A5A5A,
        "int32": 0x7A5A5A5A,
        "int16": 0x7A5A,
        "int8": 0x7A,
        "uint8": 0x7A,
        "bool": 0,
    },
}

# undefined lanes: other payloads than fresh memory's, so that the two faults stay apart
LANES: dict[int, dict[str, int]] = {
    0: POISON[0] | {"float64": 0x7FF9696969696969, "float32": 0x7FCB4B4B, "float16": 0x7E5A, "bfloat16": 0x7FCB},
    1: POISON[1] | {"float64": 0x7969696969696969, "float32": 0x79696969, "float16": 0x7969, "bfloat16": 0x7969},
}


def pattern(dtype: str, poison: int, *, lanes: bool = False) -> np.ndarray:
    """The pattern as a 0-d unsigned integer array of the dtype's size; `.view` gives it as a value.

    Raises KeyError for a dtype or number that is not listed.
    """
    from oracle.dtypes import NUMPY

    bits = (LANES if lanes else POISON)[poison][dtype]
    return np.array(bits, dtype=f"u{NUMPY[dtype].itemsize}")


def poisoned(values: np.ndarray, dtype: str) -> np.ndarray:
    """Bool mask of the elements whose bits are one of the `POISON` patterns (never for bool, which has none)."""
    if dtype == "bool" or dtype not in POISON[0]:
        return np.zeros(values.shape, dtype=bool)
    bits = np.ascontiguousarray(values).reshape(values.shape).view(f"u{values.dtype.itemsize}")
    return np.asarray((bits == pattern(dtype, 0)) | (bits == pattern(dtype, 1)))
