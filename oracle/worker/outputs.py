"""Turns what a candidate returned into plain bytes without running any code of the candidate's.

Everything used here was fetched from torch before the candidate ran. Only plain strided tensors count; anything else
(a subclass, sparse, nested, quantized, without readable memory) is a structure of its own, which the judge refuses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes

from oracle.worker.device import Device
from oracle.worker.wire import MAX_PAYLOAD

MAX_OUTPUTS = 64
KEPT_RESULTS, KEPT_BYTES = 4, 32 << 20  # of earlier calls
_Tensor = torch.Tensor
_plain_types = (torch.Tensor, torch.nn.Parameter)
_no_function, _no_grad = torch._C.DisableTorchFunction, torch.no_grad
_detach, _contiguous = torch.Tensor.detach, torch.Tensor.contiguous
_resolve_conj, _resolve_neg = torch.Tensor.resolve_conj, torch.Tensor.resolve_neg
_is_contiguous, _element_size = torch.Tensor.is_contiguous, torch.Tensor.element_size
_empty, _set, _revived = torch.empty, torch.Tensor.set_, torch.UntypedStorage._new_with_weak_ptr
_strided = torch.strided
_type_name = type.__dict__["__name__"].__get__
_is_batched = torch._C._functorch.is_functorch_wrapped_tensor
_tuple_iter, _issubclass = tuple.__iter__, issubclass


@dataclass
class Returned:
    """`structure` as in `protocol.Outcome`; of each tensor, in order, one of `headers`, `fetchers`, `tensors` (detached)."""

    structure: str
    headers: list[dict[str, Any]] = field(default_factory=list)
    fetchers: list[Callable[[], bytes]] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class _Kept:
    """A result whose memory the candidate may still use; only then can it be overwritten."""

    storage: StorageWeakRef
    like: torch.Tensor  # without memory
    before: bytes

    def changed(self, device: Device) -> bool:
        storage = _revived(self.storage.cdata)
        if storage is None:
            return False
        if storage.nbytes() < self.like.untyped_storage().nbytes():
            return True
        where = self.like.storage_offset(), self.like.shape, self.like.stride()
        tensor = _set(_empty(0, dtype=self.like.dtype, device=storage.device), storage, *where)
        try:
            return device.fetch(_contiguous(tensor), len(self.before)) != self.before
        except RuntimeError:  # it cannot be read any more
            return False


class Earlier:
    """Results of the last calls as they were: a caller may still hold them. Not those in an input's memory, which has been
    renewed since. Nothing is kept alive."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kept: deque[list[_Kept]] = deque(maxlen=KEPT_RESULTS)

    def overwritten(self) -> bool:
        """Whether one is no longer what it was; told once of each."""
        changed = [kept for result in self._kept for kept in result if kept.changed(self._device)]
        for result in self._kept:
            result[:] = [kept for kept in result if not any(kept is other for other in changed)]
        return bool(changed)

    def keep(self, returned: Returned, parts: list[bytes]) -> None:
        """The oldest make room. `parts`: the bytes of each tensor."""
        items = zip(returned.headers, returned.tensors, parts, strict=True)
        own = [(tensor, data) for header, tensor, data in items if data and header["alias"] is None]
        self._kept.append([_kept(tensor, data) for tensor, data in own if not (tensor.is_conj() or tensor.is_neg())])
        while sum(len(kept.before) for result in self._kept for kept in result) > KEPT_BYTES:
            self._kept.popleft()


def _kept(tensor: torch.Tensor, data: bytes) -> _Kept:
    storage = tensor.untyped_storage()
    end = storage.nbytes() // tensor.element_size()
    whole = _empty(end, dtype=tensor.dtype, device="meta")
    like = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return _Kept(StorageWeakRef(storage), like, data)


def guarded() -> ExitStack:
    """A context in which no mode or subclass that the candidate left behind sees our operations."""
    stack = ExitStack()
    for manager in (_no_function(), _disable_current_modes(), _no_grad()):
        stack.enter_context(manager)
    return stack


def examine(result: Any, device: Device) -> Returned:
    """Describe a result; raises nothing but MemoryError (tensors that cannot be read become a structure)."""
    kind = type(result)
    if kind in _plain_types:
        return _tensors("tensor", [result], device)
    if _issubclass(kind, tuple):
        items = [item for _, item in zip(range(MAX_OUTPUTS + 1), _tuple_iter(result), strict=False)]
        strange = [item for item in items if type(item) not in _plain_types]
        if len(items) > MAX_OUTPUTS or strange:
            names = ", ".join(_name(type(item)) for item in items[:4])
            return Returned(f"tuple of ({names}{', …' if len(items) > 4 else ''})")
        return _tensors("tuple", items, device)
    return Returned("None" if result is None else _name(kind))


def _tensors(structure: str, tensors: list[Any], device: Device) -> Returned:
    headers, fetchers, plain = [], [], []
    budget = MAX_PAYLOAD
    for tensor in tensors:
        try:
            fault = _fault(tensor)
            if fault:
                return Returned(fault)
            header, fetcher, size = _describe(tensor, device, budget)
        except MemoryError:
            raise
        except Exception as error:
            return Returned(f"a tensor that cannot be read ({_name(type(error))})")
        budget -= size
        headers.append(header)
        fetchers.append(fetcher)
        plain.append(_detach(tensor))
    return Returned(structure, headers, fetchers, plain)


def _fault(tensor: Any) -> str:
    """Why a tensor is not a plain one, or ""."""
    if tensor.layout != _strided:
        return f"a tensor of layout {tensor.layout}"
    if tensor.is_nested or tensor.is_quantized:
        return "a nested tensor" if tensor.is_nested else "a quantized tensor"
    return "a functorch tensor" if _is_batched(tensor) else ""


def _describe(tensor: Any, device: Device, budget: int) -> tuple[dict[str, Any], Callable[[], bytes], int]:
    plain = _detach(tensor)
    shape = [int(size) for size in plain.shape]
    header: dict[str, Any] = {
        "dtype": str(plain.dtype).removeprefix("torch."),
        "shape": shape,
        "contiguous": _is_contiguous(plain),
        "device": device.where(tensor) if plain.device.type != "meta" else "meta",
        "alias": None,
    }
    size = prod(shape) * _element_size(plain)
    if plain.device.type == "meta" or size > budget:
        return header, bytes, 0
    header["alias"] = device.alias(plain)

    def fetch() -> bytes:
        with guarded():
            dense = _contiguous(_resolve_neg(_resolve_conj(plain)))
            return device.fetch(dense, size) if size else b""

    return header, fetch, size


def _name(kind: type) -> str:
    return str(_type_name(kind))[:60]
