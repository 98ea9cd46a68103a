"""What crosses between the judge and a candidate's process: inputs go out, raw output bytes come back.

Nothing here is pickled. What a candidate's process reports may fail the candidate, never pass it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class TensorBuffer:
    """One tensor argument as raw storage: `storage` (uint8) holds the elements at `offset` + i·`strides` (in elements)
    and guard elements around and between them."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: np.ndarray

    def values(self, storage: np.ndarray | None = None) -> np.ndarray:
        """The logical values (a view) in this buffer's own storage, or in the given one."""
        from oracle.dtypes import NUMPY

        raw = self.storage if storage is None else storage
        flat = raw.view(NUMPY[self.dtype])
        item = flat.dtype.itemsize
        return np.lib.stride_tricks.as_strided(
            flat[self.offset :], self.shape, tuple(stride * item for stride in self.strides), writeable=False
        )


Argument = TensorBuffer | Any  # or a JSON value (a list stands for a tuple, "torch.float16" for a dtype)


def shrunk(offset: int) -> float:
    """What the floats of a timed call are multiplied by beside being rolled: in (0.5, 1], exact in float32. An answer that
    does not depend on the order of elements (a standard deviation) would else be that of every other repetition."""
    return 1.0 - (offset % 4096) / 8192


@dataclass(frozen=True)
class Call:
    """One call of the candidate's function.

    reverse    run the programs of every launch in reversed order (interpreter only).
    poison     what fresh allocations and undefined lanes hold: 0 = NaN / extreme integers, 1 = a finite pattern,
               so that a result that depends on them differs between the two.
    fill_lanes whether lanes of masked loads without `other` are poisoned too (interpreter only).
    config     which configuration of autotuned kernels runs (interpreter only), modulo their number.
    timed      where not empty (cuda only): the call is repeated and timed, once per offset, each time on the inputs as
               `oracle.inputs.renewed` by it, and autotuned kernels choose for themselves. The outcome is that of the
               last repetition.
    watched    whether every tensor operation is looked at below torch's functions too, however it was reached.
    held       whether what memory holds is wanted too, as it is when each launch begins and when the call ends.
    """

    positional: tuple[Argument, ...]
    keyword: Mapping[str, Argument] = field(default_factory=dict)
    reverse: bool = False
    poison: int = 0
    fill_lanes: bool = False
    config: int = 0
    timed: tuple[int, ...] = ()
    watched: bool = False
    held: bool = False

    def buffers(self) -> list[TensorBuffer]:
        return [a for a in (*self.positional, *self.keyword.values()) if isinstance(a, TensorBuffer)]


@dataclass(frozen=True)
class RawTensor:
    """A returned tensor: logical values in row-major order as bytes, and what the comparison needs beside them.
    `aliases` names the input whose memory it shares, if any. `dtype` is torch's name ("float32", "complex64", …)."""

    dtype: str
    shape: tuple[int, ...]
    contiguous: bool
    device: str
    data: bytes
    aliases: str | None = None

    def array(self) -> np.ndarray:
        """Raises KeyError for a dtype the oracle does not know, ValueError where bytes and shape disagree."""
        from oracle.dtypes import NUMPY

        return np.frombuffer(self.data, dtype=NUMPY[self.dtype]).reshape(self.shape)


@dataclass(frozen=True)
class Times:
    """Of a call that was repeated, per repetition made: microseconds on the GPU between two events on the caller's stream,
    microseconds of the host's clock from before the inputs were renewed until the whole device was idle, and launches.
    All three are the process's word. `wall_us`: the judge's own clock over all repetitions."""

    event_us: tuple[float, ...]
    host_us: tuple[float, ...]
    launches: tuple[int, ...]
    wall_us: float


# How a call ended.
RETURNED, RAISED, TIMEOUT, MEMORY, CRASHED = "returned", "raised", "timeout", "memory_limit", "crashed"


@dataclass(frozen=True)
class Finding:
    """Something the candidate's process noticed (`kind` is a failure kind or "note"); diagnostic, may only fail."""

    kind: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """What came of one call.

    status     RETURNED, RAISED, TIMEOUT, MEMORY or CRASHED.
    outputs    returned tensors where `structure` is "tensor" or "tuple"; other structures ("None", "int", …) have none.
    error      for RAISED: failure kind the exception amounts to (import_error, missing_entry_point, compile_error,
               launch_error, …) or "unsupported" (this backend cannot run it: no failure), message (one line) and
               traceback of the candidate's own frames.
    storages   each input buffer's storage after the call, in the order of Call.buffers(), read by the judge.
    launches   triton launches counted during the call.
    configs    the largest number of autotune configurations that a kernel of the call chose from.
    late       True if an output's bytes changed after the call returned and a final synchronisation.
    times      of a call that was repeated (`Call.timed`).
    held       what memory held (`Call.held`): storages and the values of tensors as raw bytes, each once.
    """

    status: str
    structure: str = "tensor"
    outputs: tuple[RawTensor, ...] = ()
    error_kind: str = ""
    message: str = ""
    traceback: str = ""
    storages: tuple[np.ndarray, ...] = ()
    launches: int = 0
    configs: int = 1
    findings: tuple[Finding, ...] = ()
    late: bool = False
    seconds: float = 0.0
    times: Times | None = None
    held: tuple[bytes, ...] = ()


class Session(Protocol):
    """One candidate in one process of its own. Calls run in order and share the process's state, as in a benchmark."""

    def call(self, call: Call, timeout: float) -> Outcome:
        """Run one call. After TIMEOUT, MEMORY or CRASHED the session is dead and later calls return CRASHED.
        Raises InfrastructureError for our own trouble."""
        ...

    def close(self) -> None:
        """Kill the process group; it is gone, and all that it left, a few milliseconds later. Safe to call twice."""
        ...


class Backend(Protocol):
    """Opens sessions. Thread-safe: several sessions may be open at once."""

    name: str  # "interpreter" or "cuda"
    isolation: list[str]  # layers that are on, as probed
    not_exercised: list[str]  # what this backend cannot see

    def open(self, source: str, entry: str, *, noop: bool = False) -> Session:
        """Start a process for a candidate. The source is executed inside it at once or at the first call.
        `noop`: the source is one whose kernels the judge emptied; only for bookkeeping."""
        ...

    def compiler(self) -> Backend | None:
        """A backend on which launches compile and run nothing (`oracle.compile_gate`), None where this one compiles
        itself. Closed with this one. Raises InfrastructureError where it does not start."""
        ...

    def close(self) -> None: ...
