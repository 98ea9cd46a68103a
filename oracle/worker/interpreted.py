"""The CPU device: tensors lie in the arena itself and kernels run in the repaired interpreter."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
import triton
import triton.language as tl

import oracle.interpreter as layer
from oracle.interpreter.host_compute import watching
from oracle.interpreter.state import current
from oracle.worker.device import Columns, Ended, unheard
from oracle.worker.held import Held
from oracle.worker.policies import POLICIES

_string_at = ctypes.string_at
_frombuffer = torch.frombuffer


@triton.jit
def _double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(out_ptr + lanes, x + x, mask=lanes < n)


class Interpreted:
    """See `oracle.worker.device.Device`."""

    policy = POLICIES["interpreter"]
    asynchronous = False

    def __init__(self) -> None:
        self.told = unheard
        self._extents: list[tuple[int, int]] = []  # [low, high) addresses of each input's storage
        self._ranges: list[tuple[int, int]] = []  # [low, high) addresses of each input's own elements

    def warm(self) -> dict[str, Any]:
        torch.set_num_threads(1)
        layer.install()
        x = torch.arange(5, dtype=torch.float32)
        out = torch.empty_like(x)
        with layer.redirected():
            layer.begin_call(reverse=False, poison=0, fill_lanes=False, ranges=[_range(x), _range(out)])
            _double[(2,)](x, out, 5, BLOCK=4)
            launches, findings = layer.end_call()
        if not torch.equal(out, x + x) or launches != 1 or findings:
            raise RuntimeError(f"the interpreter's first kernel went wrong: {out.tolist()}, {launches}, {findings}")
        return {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()}

    def start(self) -> None:
        pass

    def running(self) -> AbstractContextManager[Any]:
        return _running()

    def place(self, arena: memoryview, inputs: list[dict[str, Any]]) -> list[Any]:
        tensors = []
        self._extents, self._ranges = [], []
        for item in inputs:
            dtype = getattr(torch, item["dtype"])
            if item["bytes"]:
                storage = _frombuffer(arena, dtype=torch.uint8, count=item["bytes"], offset=item["start"])
            else:
                storage = torch.empty(0, dtype=torch.uint8)
            tensor = storage.view(dtype).as_strided(item["shape"], item["strides"], item["offset"])
            tensors.append(tensor)
            self._extents.append((storage.data_ptr(), storage.data_ptr() + item["bytes"]))
            self._ranges.append(_range(tensor))
        return tensors

    def begin(self, call: dict[str, Any]) -> None:
        settings = {name: call[name] for name in ("reverse", "poison", "fill_lanes", "config")}
        layer.begin_call(**settings, ranges=self._ranges)
        current.watched, current.held = call["watched"], Held() if call["held"] else None

    def repeat(self, tensors: list[Any], offsets: list[int], call: Callable[[], Any]) -> tuple[Any, Columns]:
        raise NotImplementedError("only a GPU's times mean anything")

    def synchronize(self) -> None:
        pass

    def end(self) -> Ended:
        current.hold()
        launches, findings = layer.end_call()
        held = current.held.chunks if current.held else []
        return Ended(launches, findings, layer.configurations(), layer.unsupported() or "", held)

    def where(self, tensor: Any) -> str:
        """The inputs are on "cpu" here; what would be on the CPU of a machine with a GPU is on "host"."""
        return {"cuda": "cpu", "cpu": "host"}.get(layer.device_of(tensor), "elsewhere")

    def alias(self, tensor: Any) -> int | None:
        low, high = _range(tensor)
        for index, (start, stop) in enumerate(self._extents):
            if low < stop and start < high:
                return index
        return None

    def fetch(self, tensor: Any, count: int) -> bytes:
        return _string_at(tensor.data_ptr(), count)

    def give_back(self) -> None:
        pass


@contextmanager
def _running() -> Iterator[None]:
    with layer.redirected(), watching():
        yield


def _range(tensor: Any) -> tuple[int, int]:
    """[low, high) addresses of a tensor's own elements; empty where it has none."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()


DEVICE = Interpreted()
