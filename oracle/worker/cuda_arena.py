"""Where the inputs of a call lie on the GPU: side by side, at the same places for the same sizes, in memory that nobody may
touch around and between them."""

from __future__ import annotations

from typing import Any

import torch

from oracle.interpreter.state import current
from oracle.worker.cuda_memory import ZONE, ZONE_BYTE
from oracle.worker.isolation import MIB

_SPARE = 1 * MIB  # it grows in these steps

_empty, _cat, _frombuffer = torch.empty, torch.cat, torch.frombuffer
_Inputs = list[dict[str, Any]]


class Arena:
    def __init__(self) -> None:
        self._memory: torch.Tensor | None = None
        self._inputs: _Inputs = []
        self._host: memoryview | None = None

    def start(self) -> None:
        self._memory = _empty(_SPARE, dtype=torch.uint8, device="cuda")

    def place(self, host: memoryview, inputs: _Inputs) -> list[torch.Tensor]:
        """Tensors over copies of the storages that lie in `host`."""
        self._host, self._inputs = host, inputs  # which lie in this order
        end = ZONE + max((item["start"] + item["bytes"] for item in inputs), default=0) + ZONE
        if self._memory is None or end > self._memory.numel():
            self._memory = _empty(-(-end // _SPARE) * _SPARE, dtype=torch.uint8, device="cuda")
        self._memory[:end].fill_(ZONE_BYTE)
        tensors = []
        for item in inputs:
            storage = self._storage(item)
            if item["bytes"]:
                storage.copy_(_given(host, item))
            flat = storage.view(getattr(torch, item["dtype"]))
            tensors.append(flat.as_strided(item["shape"], item["strides"], flat.storage_offset() + item["offset"]))
        return tensors

    def check(self) -> None:
        """Note whether anything beside the inputs was written to. It waits for the GPU."""
        if not self._inputs or self._memory is None:
            return
        ends = [0, *(ZONE + item["start"] + item["bytes"] for item in self._inputs)]
        starts = [*(ZONE + item["start"] for item in self._inputs), ends[-1] + ZONE]
        gaps = _cat([self._memory[low:high] for low, high in zip(ends, starts, strict=True)])
        touched = int((gaps != ZONE_BYTE).sum().item())
        if touched:
            current.find("out_of_bounds", f"{touched} bytes beside the inputs were written")

    def alias(self, tensor: torch.Tensor) -> int | None:
        """Place among the call's inputs of the one whose memory the tensor shares."""
        if self._memory is None or not tensor.is_cuda or not tensor.numel():
            return None
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        low = tensor.data_ptr() - self._memory.data_ptr() - ZONE
        high = low + (last + 1) * tensor.element_size()
        for index, item in enumerate(self._inputs):
            if low < item["start"] + item["bytes"] and item["start"] < high:
                return index
        return None

    def give_back(self) -> None:
        """Bring the storages as they are now to where they came from."""
        for item in self._inputs:
            if item["bytes"]:
                assert self._host is not None
                _given(self._host, item).copy_(self._storage(item))

    def _storage(self, item: dict[str, Any]) -> torch.Tensor:
        assert self._memory is not None
        return self._memory[ZONE + item["start"] : ZONE + item["start"] + item["bytes"]]


def _given(host: memoryview, item: dict[str, Any]) -> torch.Tensor:
    return _frombuffer(host, dtype=torch.uint8, count=item["bytes"], offset=item["start"])
