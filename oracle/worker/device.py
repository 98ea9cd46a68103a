"""What differs between backends inside a candidate's process: how inputs become tensors and outputs become bytes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from oracle.worker.isolation import Policy

MODULES = {  # each with `DEVICE`
    "interpreter": "oracle.worker.interpreted",
    "cuda": "oracle.worker.cuda",
    "compiler": "oracle.compile_gate.device",
}


Columns = tuple[list[float], list[float], list[int]]  # of `oracle.worker.protocol.Times`, one element a repetition


@dataclass(frozen=True)
class Ended:
    """What a device noticed during one call. `launches` counted; `findings` (kind, message); `configs`: the largest
    number of autotune configurations chosen from; `unsupported`: what the backend cannot do, or ""; `held`: what memory
    held, where the call wants it."""

    launches: int = 0
    findings: list[tuple[str, str]] = field(default_factory=list)
    configs: int = 1
    unsupported: str = ""
    held: list[bytes] = field(default_factory=list)


class Device(Protocol):
    """One object per warm parent, inherited by every fork. Methods are called in the order given here.

    Nothing but `start` and later methods may touch a GPU: the warm parent forks.
    """

    policy: Policy  # what its processes need
    asynchronous: bool  # whether work may still be under way when a call returns
    told: Callable[[bool], None]  # set by the child: called as a kernel's compilation begins (True) and ends (False)

    def warm(self) -> dict[str, Any]:
        """Once, in the warm parent: import, patch, run a first kernel where that needs no GPU. Returns facts for the
        judge (versions, self-test), JSON only."""
        ...

    def start(self) -> None:
        """Once, in the contained child, before the candidate's source is executed."""
        ...

    def running(self) -> AbstractContextManager[Any]:
        """What the candidate's code runs under, at import and at every call."""
        ...

    def place(self, arena: memoryview, inputs: list[dict[str, Any]]) -> list[Any]:
        """Tensors over the storages that lie in the arena. Each input has `start`, `bytes` (its storage in the arena),
        `dtype`, `shape`, `strides`, `offset` (in elements, within the storage)."""
        ...

    def begin(self, call: dict[str, Any]) -> None:
        """Before a call: `reverse`, `poison`, `fill_lanes`, `config`, `timed`, `watched`, `held`."""
        ...

    def repeat(self, tensors: list[Any], offsets: list[int], call: Callable[[], Any]) -> tuple[Any, Columns]:
        """Instead of one call, within `running`: repeat and time it (`oracle.worker.repeating`). Only on a GPU."""
        ...

    def synchronize(self) -> None:
        """Wait until everything that the call started on the device is done."""
        ...

    def end(self) -> Ended:
        """After a call."""
        ...

    def where(self, tensor: Any) -> str:
        """Device type of a returned tensor, "cpu" or "cuda" as the inputs' where it is right."""
        ...

    def alias(self, tensor: Any) -> int | None:
        """Index of the input whose memory a returned tensor shares."""
        ...

    def fetch(self, tensor: Any, count: int) -> bytes:
        """The `count` bytes of a contiguous, plain tensor."""
        ...

    def give_back(self) -> None:
        """After a call: bring the inputs' storages as they are now into the arena."""
        ...


def unheard(_begun: bool) -> None:
    """What `Device.told` is until a child sets it."""


def load(backend: str) -> Device:
    return importlib.import_module(MODULES[backend]).DEVICE
