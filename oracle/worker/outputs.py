"""Turns what a candidate returned into plain bytes without running any code of the candidate's.

Everything used here was fetched from torch before the candidate ran. Only plain strided tensors count; anything else
(a subclass, sparse, nested, quantized, without readable memory) is a structure of its own, which the judge refuses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
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
_strided = torch.strided
_type_name = type.__dict__["__name__"].__get__
_is_batched = torch._C._functorch.is_functorch_wrapped_tensor
_tuple_iter, _issubclass = tuple.__iter__, issubclass


@dataclass
class Returned:
    """`structure` as in `protocol.Outcome`; `headers` and `fetchers`: one per tensor, in order."""

    structure: str
    headers: list[dict[str, Any]]
    fetchers: list[Callable[[], bytes]]


class Earlier:
    """Results of the last calls, which a caller may still hold, and their bytes as they were returned. Not those in an
    input's memory: the inputs have been renewed since."""

    def __init__(self) -> None:
        self._kept: deque[list[tuple[Callable[[], bytes], bytes]]] = deque(maxlen=KEPT_RESULTS)

    def overwritten(self) -> bool:
        """Whether one is no longer what it was. It is told once; what can no longer be read is no longer looked at."""
        changed = False
        for result in self._kept:
            for item in list(result):
                fetch, before = item
                try:
                    same = fetch() == before
                except RuntimeError:
                    result.remove(item)
                    continue
                if not same:
                    changed = True
                    result.remove(item)
        return changed

    def keep(self, returned: Returned, parts: list[bytes]) -> None:
        """The oldest make room. `parts`: the bytes of each tensor."""
        items = zip(returned.headers, returned.fetchers, parts, strict=True)
        self._kept.append([(fetch, data) for header, fetch, data in items if data and header["alias"] is None])
        while sum(len(data) for result in self._kept for _, data in result) > KEPT_BYTES:
            self._kept.popleft()


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
            return Returned(f"tuple of ({names}{', …' if len(items) > 4 else ''})", [], [])
        return _tensors("tuple", items, device)
    return Returned("None" if result is None else _name(kind), [], [])


def _tensors(structure: str, tensors: list[Any], device: Device) -> Returned:
    headers, fetchers = [], []
    budget = MAX_PAYLOAD
    for tensor in tensors:
        try:
            fault = _fault(tensor)
            if fault:
                return Returned(fault, [], [])
            header, fetcher, size = _describe(tensor, device, budget)
        except MemoryError:
            raise
        except Exception as error:
            return Returned(f"a tensor that cannot be read ({_name(type(error))})", [], [])
        budget -= size
        headers.append(header)
        fetchers.append(fetcher)
    return Returned(structure, headers, fetchers)


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
