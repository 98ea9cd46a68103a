"""The dtypes a case may have, by torch's names, with what the judge needs to know of each."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import torch


@dataclass(frozen=True)
class Float:
    """eps: spacing at 1 (2 × unit roundoff). smallest_normal, max: finite range. All as Python floats."""

    eps: float
    smallest_normal: float
    max: float


NUMPY: dict[str, np.dtype] = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "int64": np.dtype(np.int64),
    "int32": np.dtype(np.int32),
    "int16": np.dtype(np.int16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
}

FLOATS: dict[str, Float] = {
    name: Float(float(info.eps), float(info.smallest_normal), float(info.max))
    for name, info in (
        (name, torch.finfo(getattr(torch, name))) for name in ("float64", "float32", "float16", "bfloat16")
    )
}


def torch_dtype(name: str) -> torch.dtype:
    """torch dtype of a name; raises KeyError for a name that is not in `NUMPY`."""
    NUMPY[name]
    return getattr(torch, name)


def to_torch64(array: np.ndarray) -> torch.Tensor:
    """A float64 CPU tensor of a float array (bfloat16 included); integer and bool arrays keep their dtype."""
    floating = array.dtype.kind == "f" or array.dtype == NUMPY["bfloat16"]
    return torch.from_numpy(array.astype(np.float64 if floating else array.dtype, order="C"))


def to_torch(array: np.ndarray) -> torch.Tensor:
    """A CPU tensor with the array's own dtype and values (bfloat16 included), contiguous, own memory."""
    if array.dtype == NUMPY["bfloat16"]:
        return torch.from_numpy(array.copy(order="C").view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array.copy(order="C"))
