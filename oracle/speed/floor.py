"""The least time that a call can take on a GPU: what it must read and write, and what it must multiply, at the peak rates.

The peaks are those that the vendor gives: DRAM's double data rate times bus width, and the dense tensor-core rate per
multiprocessor and clock (NVIDIA's architecture white papers: V100, T4, A100, GA102, H100, AD102, B200). A rate that is
not known gives no floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.dtypes import NUMPY
from oracle.inputs import Inputs
from oracle.reference import Expected

# float16 operations of one multiprocessor in one cycle, by compute capability; float32 (as TF32) takes twice as long
_TENSOR = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192}
_CHOSEN_FROM = ("index", "mask")  # with such an argument, not all elements of the others need be read


@dataclass(frozen=True)
class Peaks:
    """Bytes and operations a second; None where it is not known."""

    gpu: str
    bytes: float | None
    operations: float | None

    @classmethod
    def of(cls, properties: Any, dtype: str) -> Peaks:
        """From `torch.cuda.get_device_properties`; `dtype` is that of the products."""
        memory = getattr(properties, "memory_clock_rate", 0) * 1e3, getattr(properties, "memory_bus_width", 0)
        rate = _TENSOR.get((properties.major, properties.minor), 0) * properties.multi_processor_count
        rate *= getattr(properties, "clock_rate", 0) * 1e3 / (2 if dtype == "float32" else 1)
        return cls(properties.name, memory[0] * memory[1] / 8 * 2 or None, rate or None)


def floor_us(traffic: int, operations: int, peaks: Peaks) -> float | None:
    """Microseconds; None where no peak is known."""
    bounds = [traffic / peaks.bytes if peaks.bytes else 0.0, operations / peaks.operations if peaks.operations else 0.0]
    return 1e6 * max(bounds) or None


def least_traffic(inputs: Inputs, expected: Expected) -> int:
    """Bytes that any implementation moves: every input once, every output and changed argument once. Where an index or
    a mask chooses what is needed, of the inputs those two alone."""
    roles = {tensor.name: tensor.values for tensor in inputs.form.tensors}
    chosen = any(role in _CHOSEN_FROM for role in roles.values())
    needed = [b for b in inputs.tensors if roles[b.name] != "out" and (not chosen or roles[b.name] in _CHOSEN_FROM)]
    written = [*expected.outputs, *expected.mutated.values()]
    sizes = [(buffer.dtype, buffer.shape) for buffer in needed] + [(q.dtype, q.values.shape) for q in written]
    return sum(int(np.prod(shape, dtype=np.int64)) * NUMPY[dtype].itemsize for dtype, shape in sizes)
