"""Every address a kernel touches, checked against the live tensors before the access happens.

Live are: the inputs of the call (their logical extents, guards left out), what the candidate allocated through torch
(see `allocations`), the storages of other tensors passed to the launch, and storages whose `data_ptr()` was taken.
A lane may touch any of them, since kernels legitimately step from one view to another part of the same tensor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as stock
from torch.multiprocessing.reductions import StorageWeakRef

from oracle.interpreter import allocations
from oracle.interpreter.bfloat16 import TensorHandle, np_dtype
from oracle.interpreter.errors import OutOfBounds
from oracle.interpreter.state import current
from oracle.poison import LANES


@dataclass
class Memory:
    """`inputs`: [first byte, one past the last) of each input. `extents` are those that the current launch may touch,
    sorted, `names` kernel arguments by the address they point at. Of the load being built Triton's own layer forgets
    whether it was given an `other` (for a scalar 0) and that it loads booleans (as int8): `other_given`, `boolean`."""

    inputs: list[tuple[int, int]] = field(default_factory=list)
    pointed: list[tuple[StorageWeakRef, int, int]] = field(default_factory=list)
    extents: list[tuple[int, int]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    other_given: bool = True
    boolean: bool = False

    def restart(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.inputs = [(low, high) for low, high in ranges if high > low]
        self.pointed.clear()

    def known(self) -> list[tuple[int, int]]:
        self.pointed = [entry for entry in self.pointed if not entry[0].expired()]
        return [*self.inputs, *allocations.extents(), *((low, high) for _, low, high in self.pointed)]

    def point(self, tensor: torch.Tensor) -> None:
        """A tensor's address was taken: kernels may reach it through an integer as long as its storage lives."""
        storage = tensor.untyped_storage()
        for low, high in self.unknown([storage], self.known()):
            self.pointed.append((StorageWeakRef(storage), low, high))

    @staticmethod
    def unknown(storages: Iterable[torch.UntypedStorage], known: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        """Whole extents of storages that hold no known tensor. A storage that does (an input's padded buffer) adds
        nothing: what surrounds the tensor there is out of bounds."""
        for storage in storages:
            low = storage.data_ptr()
            high = low + storage.nbytes()
            if low and high > low and not any(low < k_high and k_low < high for k_low, k_high in known):
                yield low, high

    def launch(self, tensors: dict[str, torch.Tensor]) -> None:
        """Collect what the kernel about to run may touch."""
        known = self.known()
        storages = {s.data_ptr(): s for s in (tensor.untyped_storage() for tensor in tensors.values())}
        self.extents = sorted({*known, *self.unknown(storages.values(), known)})
        self.names = {tensor.data_ptr(): name for name, tensor in tensors.items()}

    def check(self, pointers: Any, mask: np.ndarray, action: str) -> None:
        """Raises OutOfBounds if an active lane's element does not lie inside one extent."""
        addresses = pointers.data
        size = element_size(pointers)
        low, high = int(addresses.min()), int(addresses.max()) + size
        for start, stop in self.extents:
            if start <= low and high <= stop:
                return
        active = addresses[np.broadcast_to(mask, addresses.shape)]
        if not active.size:
            return
        starts = np.array([start for start, _ in self.extents] or [0], np.uint64)
        stops = np.array([stop for _, stop in self.extents] or [0], np.uint64)
        index = np.searchsorted(starts, active, side="right").astype(np.int64) - 1
        start, stop = starts[np.maximum(index, 0)], stops[np.maximum(index, 0)]
        room = np.where(stop - start >= size, stop - start - np.uint64(min(size, 1 << 20)), np.uint64(0))
        bad = (index < 0) | (stop - start < size) | (active - start > room)
        if bad.any():
            self._refuse(int(active[bad][0]), int(bad.sum()), int(active.size), size, action)

    def _refuse(self, address: int, bad: int, lanes: int, size: int, action: str) -> None:
        where = "no tensor is live"
        if self.extents:
            start, stop = min(self.extents, key=lambda e: max(e[0] - address, address - e[1] + 1, 0))
            name = next((f"`{n}`" for a, n in self.names.items() if start <= a < stop), "a tensor")
            index, count = (address - start) // size, (stop - start) // size
            where = f"the first at element {index} of {name}, which has {count}"
        raise OutOfBounds(f"{action} out of bounds in {bad} of {lanes} lane{'s' * (lanes > 1)}: {where}")


memory = Memory()


def element_size(pointers: Any) -> int:
    return max(1, pointers.get_element_ty().primitive_bitwidth // 8)


def lane_fill(dtype: Any) -> Any:
    """What an undefined lane holds under the current poison (`oracle.poison.LANES`); zero for pointers."""
    kind = np_dtype(dtype)
    if isinstance(dtype, tl.pointer_type):
        return np.zeros((), kind)
    patterns = LANES[current.poison]
    if memory.boolean:
        return np.array(patterns["bool"], kind)
    if kind.name in patterns:
        bits = patterns[kind.name]
    elif kind == np.bool_:
        return np.array(bool(patterns["bool"]))
    else:
        bits = patterns[f"int{8 * kind.itemsize}"]
    return np.array(bits, f"u{kind.itemsize}").view(kind)


def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
    dtype = ptrs.get_element_ty()
    kind = np_dtype(dtype)
    active = np.asarray(mask.data if isinstance(mask, TensorHandle) else mask, dtype=np.bool_)
    memory.check(ptrs, active, "load")
    if other is not None:
        fill = other.data
    elif current.fill_lanes and not memory.other_given:
        fill = np.full(ptrs.data.shape, lane_fill(dtype), dtype=kind)
    else:
        fill = np.zeros(ptrs.data.shape, dtype=kind)
    raw = np.dtype(f"u{kind.itemsize}") if kind.isbuiltin == 2 else kind  # ml_dtypes: as bits
    loaded = stock._interpreter.load(ptrs.data, active, np.ascontiguousarray(fill).view(raw), raw)
    return TensorHandle(loaded.view(kind), dtype)


def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *options: Any, **named: Any) -> None:
    active = np.asarray(mask.data if isinstance(mask, TensorHandle) else mask, dtype=np.bool_)
    memory.check(ptrs, active, "store")
    kind = np_dtype(ptrs.get_element_ty())
    data = value.data if value.data.dtype.itemsize == kind.itemsize else value.data.astype(kind)
    raw = np.ascontiguousarray(data).view(f"u{kind.itemsize}") if kind.isbuiltin == 2 else data
    stock._interpreter.store(ptrs.data, raw, active)


def _semantic_load(original: Any) -> Any:
    def load(self: Any, ptr: Any, mask: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        memory.other_given = mask is not None and other is not None
        memory.boolean = getattr(ptr.dtype, "element_ty", None) == tl.int1
        try:
            return original(self, ptr, mask, other, *args, **kwargs)
        finally:
            memory.other_given, memory.boolean = True, False

    return load


def _atomic_rmw(original: Any) -> Any:
    def create_atomic_rmw(self: Any, rmw_op: Any, ptr: Any, val: Any, mask: Any, *order: Any) -> Any:
        memory.check(ptr, mask.data, "atomic access")
        if np_dtype(val.dtype).isbuiltin != 2:
            return original(self, rmw_op, ptr, val, mask, *order)
        # numpy's own types only in the stock code: one lane after another, in order
        old = np.zeros(ptr.data.shape, val.data.dtype)
        active = np.broadcast_to(mask.data, ptr.data.shape)
        values = np.broadcast_to(val.data, ptr.data.shape)
        for lane in zip(*np.nonzero(active), strict=True):
            one = TensorHandle(ptr.data[lane].reshape(1), ptr.dtype)
            before = create_masked_load(self, one, np.ones(1, bool), None)
            old[lane] = before.data[0]
            after = self.binary_op(before, TensorHandle(values[lane].reshape(1), val.dtype), np.add)
            create_masked_store(self, one, after, np.ones(1, bool))
        return TensorHandle(old, val.dtype.scalar)

    return create_atomic_rmw


def _atomic_cas(original: Any) -> Any:
    def create_atomic_cas(self: Any, ptr: Any, *args: Any) -> Any:
        memory.check(ptr, np.ones(ptr.data.shape, np.bool_), "atomic access")
        return original(self, ptr, *args)

    return create_atomic_cas


def install() -> None:
    builder = stock.InterpreterBuilder
    builder.create_masked_load, builder.create_masked_store = create_masked_load, create_masked_store
    builder.create_atomic_rmw = _atomic_rmw(builder.create_atomic_rmw)
    builder.create_atomic_cas = _atomic_cas(builder.create_atomic_cas)
    semantic = type(stock.interpreter_semantic)
    semantic.load = _semantic_load(semantic.load)
