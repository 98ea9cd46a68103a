"""The judge's side of one candidate's process. Everything that comes from the process is checked before it is used."""

from __future__ import annotations

import json
import math
import mmap
import os
import signal
import socket
import time
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from oracle.clock import spending, spent
from oracle.errors import InfrastructureError, WorkerLost
from oracle.worker.protocol import (
    CRASHED,
    MEMORY,
    RAISED,
    RETURNED,
    TIMEOUT,
    Argument,
    Call,
    Finding,
    Outcome,
    RawTensor,
    TensorBuffer,
    Times,
)
from oracle.worker.wire import ARENA_BYTES, Channel, Closed, Garbage, Late

START_SECONDS = 60.0  # our own part: fork and containment
DEVICE_SECONDS = 180.0  # our own part as well: a GPU's driver starts slowly where many start at once
COMPILE_SECONDS = 300.0  # time that one call may spend compiling kernels; it does not count as the call's own
LOAD_SECONDS = 20.0  # least time for executing the source: it may import large packages
END_SECONDS = 30.0
_ALIGN = 4096
_TEXT = 5000  # longest text taken over from a process
_ITEM_SIZES = {
    **{"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1},
    **{"uint8": 1, "bool": 1, "uint16": 2, "uint32": 4, "uint64": 8, "complex32": 4, "complex64": 8, "complex128": 16},
    **{"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1},
}
_KINDS = {"compile_error", "launch_error", "import_error", "missing_entry_point", "out_of_bounds", "unsupported"}


class WorkerSession:
    """See `oracle.worker.protocol.Session`. `channel` and `supervisor` are this side's ends, `arena` a sealed memfd of
    ARENA_BYTES that this side owns from now on."""

    def __init__(self, channel: socket.socket, supervisor: socket.socket, arena: int, source: str, entry: str) -> None:
        self._channel, self._supervisor = Channel(channel), supervisor
        self._arena = mmap.mmap(arena, ARENA_BYTES)
        os.close(arena)
        self._first = {"source": source, "entry": entry}
        self._pidfd: int | None = None
        self._excess = 0  # bytes of memory for which the warm parent ended the process
        self._loaded = False
        self._ended: Outcome | None = None  # why no further call can be made
        self._closed = False
        self._marks: list[float] = []  # when the process began and ended to repeat the call under way
        self._early: tuple[Finding, ...] = ()  # found while the source was executed; told with the first call

    def call(self, call: Call, timeout: float) -> Outcome:
        if self._ended is None and not self._loaded:
            with spending("start"):
                self._ended = self._load(timeout)
            self._loaded = True
        if self._ended is not None:
            return self._ended
        started = time.monotonic()
        with spending("ship"):
            outcome = self._call(call, started + timeout)
        if outcome.status in (TIMEOUT, MEMORY, CRASHED):
            self.close()
            self._ended = Outcome(CRASHED, message="the process ended in an earlier call", findings=outcome.findings)
        return _timed(outcome, started)

    def leave(self) -> None:
        """Nothing more is asked: the process ends by itself."""
        self._channel.close()

    def close(self) -> None:
        """Kill the process. The warm parent sees to it that nothing of it is left, a few milliseconds later."""
        self._end(wait=False)

    def _load(self, timeout: float) -> Outcome | None:
        """Wait for the process, have the source executed; the outcome of every call where that failed, else None."""
        started = time.monotonic()
        try:
            self._greet(started + START_SECONDS)
            executing = time.monotonic()
            self._channel.send(self._first, executing + START_SECONDS)
            message, _ = self._channel.receive(executing + DEVICE_SECONDS)
            if message.get("type") != "ready":  # sent before any code of the candidate's has run
                raise InfrastructureError(f"the device does not start in a contained process: {message.get('reason')}")
            message, _ = self._executed(time.monotonic() + max(timeout, LOAD_SECONDS))
            raised = _raised(message)
            findings = _findings(message)
        except Late:
            raised, findings = Outcome(TIMEOUT, message="executing the source took too long"), ()
        except (Closed, Garbage) as error:
            raised, findings = self._broken(error), ()
        if raised is None:
            self._early = findings
            return None
        self.close()
        return _timed(raised, started, findings)

    def _greet(self, deadline: float) -> None:
        """The warm parent's word that the process exists, and its own that it is contained."""
        try:
            self._supervisor.settimeout(max(0.1, deadline - time.monotonic()))
            data, descriptors, _, _ = socket.recv_fds(self._supervisor, 4096, 1)
            if not descriptors:
                if not data:
                    raise WorkerLost("no process for the candidate: the warm parent ended")
                raise InfrastructureError(f"no process for the candidate: {json.loads(data)['error']}")
            self._pidfd = descriptors[0]
            message, _ = self._channel.receive(deadline)
        except Closed:
            raise WorkerLost("the candidate's process ended before it was contained") from None
        except (OSError, Late, Garbage) as error:
            raise InfrastructureError(
                f"the candidate's process did not start: {error or type(error).__name__}"
            ) from None
        if message.get("type") != "started":
            raise InfrastructureError(f"the candidate's process could not be contained: {message.get('reason')}")

    def _call(self, call: Call, deadline: float) -> Outcome:
        buffers = call.buffers()
        places = self._write(buffers)
        self._marks = []
        try:
            self._channel.send(_request(call, buffers, places), deadline)
            message, parts = self._executed(deadline)
            early, self._early = self._early, ()
            findings = (*early, *_findings(message))
            raised = _raised(message)
            held, parts = _split(parts, _count(message, "held"))
            if raised is None:
                names = [buffer.name for buffer in buffers]
                outcome = Outcome(
                    RETURNED,
                    structure=_text(message, "structure"),
                    outputs=_tensors(_described(message, "outputs"), parts, names),
                    late=message.get("late") is True,
                    times=_times(message, self._marks) if call.timed else None,
                )
            else:
                outcome = raised
            launches, configs = _count(message, "launches"), _count(message, "configs")
        except Late:
            return Outcome(TIMEOUT, message="the call did not return in time", findings=self._early)
        except (Closed, Garbage) as error:
            return self._broken(error)
        storages = tuple(
            np.frombuffer(self._arena, np.uint8, buffer.storage.nbytes, place).copy()
            for buffer, place in zip(buffers, places, strict=True)
        )
        return _with(outcome, storages=storages, launches=launches, configs=configs, findings=findings, held=held)

    def _executed(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """The next message of substance; the time that the candidate's code took is booked as such, all of the wait
        where the process does not say how much that was."""
        started, said = time.monotonic(), math.inf
        try:
            message, parts = self._receive(deadline)
            said = _seconds(message)
            return message, parts
        finally:
            spent("execute", min(said, time.monotonic() - started))

    def _receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """The next message of substance. While the process says that it compiles, its time stands still, for as long as
        COMPILE_SECONDS last."""
        credit, begun = COMPILE_SECONDS, 0.0
        while True:
            message, parts = self._channel.receive(begun + credit if begun else deadline)
            now = time.monotonic()
            if message.get("type") == "timing":
                self._marks.append(now)
                continue
            if message.get("type") != "compiling":
                return message, parts
            if begun:
                credit -= now - begun
                deadline += now - begun
            begun = now if message.get("begun") is True else 0.0

    def _write(self, buffers: list[TensorBuffer]) -> list[int]:
        """Copy the storages into the arena, at the same places for the same sizes; where each starts."""
        places, end = [], 0
        for buffer in buffers:
            if end + buffer.storage.nbytes > ARENA_BYTES:
                raise InfrastructureError(f"the inputs of one call need more than {ARENA_BYTES >> 20} MiB")
            places.append(end)
            target = np.frombuffer(self._arena, np.uint8, buffer.storage.nbytes, end) if buffer.storage.nbytes else None
            if target is not None:
                target[:] = buffer.storage.reshape(-1)
            end += -(-(buffer.storage.nbytes + 1) // _ALIGN) * _ALIGN
        return places

    def _broken(self, error: Exception) -> Outcome:
        """The process ended, or spoke nonsense."""
        if isinstance(error, Garbage):
            text = f"wrote {error} to the channel that carries its results"
            return Outcome(CRASHED, message=text, findings=(Finding("tampering", text),))
        code = self._end()
        if code is None:
            raise WorkerLost("the warm parent ended during a call")
        if self._excess:
            return Outcome(MEMORY, message=f"the process had taken {self._excess / 2**30:.1f} GiB of memory")
        if code >= 0:
            return Outcome(CRASHED, message=f"exited by itself with status {code}")
        if code == -signal.SIGKILL:
            return Outcome(CRASHED, message="closed the channel that carries its results, or was killed")
        return Outcome(CRASHED, message=f"ended by {signal.Signals(-code).name}")

    def _end(self, wait: bool = True) -> int | None:
        """Kill and free everything; the warm parent's word on how it ended, None where that is missing or not waited for."""
        if self._closed:
            return None
        self._closed = True
        with spending("end"):
            return self._bury(wait)

    def _bury(self, wait: bool) -> int | None:
        code = None
        if self._pidfd is not None:
            # a process that has ended by itself keeps its own exit status
            with suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        with suppress(OSError, ValueError, KeyError):
            self._supervisor.shutdown(socket.SHUT_WR)
            self._supervisor.settimeout(END_SECONDS)
            while wait and (data := self._supervisor.recv(4096)):
                told = json.loads(data)
                code, self._excess = told.get("code", code), told.get("excess", 0)
        self._supervisor.close()
        self._channel.close()
        self._arena.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        return code


def _request(call: Call, buffers: list[TensorBuffer], places: list[int]) -> dict[str, Any]:
    index = {id(buffer): position for position, buffer in enumerate(buffers)}

    def argument(value: Argument) -> dict[str, Any]:
        return {"tensor": index[id(value)]} if isinstance(value, TensorBuffer) else {"json": value}

    return {
        "inputs": [
            {
                "start": place,
                "bytes": buffer.storage.nbytes,
                "dtype": buffer.dtype,
                "shape": list(buffer.shape),
                "strides": list(buffer.strides),
                "offset": buffer.offset,
            }
            for buffer, place in zip(buffers, places, strict=True)
        ],
        "positional": [argument(value) for value in call.positional],
        "keyword": {name: argument(value) for name, value in call.keyword.items()},
        "reverse": call.reverse,
        "poison": call.poison,
        "fill_lanes": call.fill_lanes,
        "config": call.config,
        "timed": list(call.timed),
        "watched": call.watched,
        "held": call.held,
    }


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise Garbage(f"a message whose {name} is no text")
    return _shown(value)


def _shown(text: str) -> str:
    """A candidate's words, fit for a terminal, a page and a file: no control characters, no halves of characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text[:_TEXT])


def _count(message: dict[str, Any], name: str) -> int:
    value = message.get(name)
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise Garbage(f"a message whose {name} is no count")
    return value


def _split(parts: list[bytes], count: int) -> tuple[tuple[bytes, ...], list[bytes]]:
    """The last `count` parts, and those before them."""
    start = len(parts) - count
    if start < 0:
        raise Garbage("fewer parts than are held")
    return tuple(parts[start:]), parts[:start]


def _seconds(message: dict[str, Any]) -> float:
    value = message.get("seconds")
    if not isinstance(value, float) or not value >= 0.0:
        raise Garbage("a message without seconds")
    return value


def _times(message: dict[str, Any], marks: list[float]) -> Times:
    """What the process says of its repetitions, beside our own clock's word from its first sign to its second."""
    columns = message.get("times")
    if not isinstance(columns, list) or len(columns) != 3 or len(marks) != 2:
        raise Garbage("repetitions without times")
    for column in columns:
        if not isinstance(column, list) or not column or len(column) != len(columns[0]):
            raise Garbage("times that are no numbers")
        if not all(type(value) in (int, float) and 0 <= value < 1e12 for value in column):
            raise Garbage("times that are no numbers")
    event, host, launches = columns
    return Times(tuple(event), tuple(host), tuple(map(int, launches)), 1e6 * (marks[1] - marks[0]))


def _raised(message: dict[str, Any]) -> Outcome | None:
    """The outcome that a message's `kind` names; None where nothing was raised."""
    kind, text, frames = (_text(message, name) for name in ("kind", "message", "traceback"))
    if not kind:
        return None
    if kind == "memory_limit":
        return Outcome(MEMORY, message=text, traceback=frames)
    if kind == "exited":
        return Outcome(CRASHED, message=f"exited by itself ({text})", traceback=frames)
    if kind == "faulted":  # the process's CUDA context is lost
        return Outcome(CRASHED, message=text, traceback=frames)
    if kind not in _KINDS:
        raise Garbage("an unknown kind of error")
    return Outcome(RAISED, error_kind=kind, message=text, traceback=frames)


def _findings(message: dict[str, Any]) -> tuple[Finding, ...]:
    found = message.get("findings")
    if not isinstance(found, list) or len(found) > 1000:
        raise Garbage("findings that are no list")
    pairs = [item for item in found if isinstance(item, list) and len(item) == 2]
    return tuple(Finding(str(kind)[:40], _shown(str(text))) for kind, text in pairs)


def _described(message: dict[str, Any], name: str) -> list[Any]:
    headers = message.get(name)
    if not isinstance(headers, list):
        raise Garbage(f"a message whose {name} are no list")
    return headers


def _tensors(headers: list[Any], parts: list[bytes], inputs: list[str]) -> tuple[RawTensor, ...]:
    """Tensors as the process describes them; their bytes agree with shape and dtype, or are absent (too large, or on no
    real device)."""
    if len(headers) != len(parts):
        raise Garbage("outputs that do not fit their bytes")
    outputs = []
    for header, data in zip(headers, parts, strict=True):
        if not isinstance(header, dict):
            raise Garbage("an output without a description")
        shape, alias = header.get("shape"), header.get("alias")
        if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 62 for size in shape):
            raise Garbage("an output without a shape")
        if alias is not None and not (type(alias) is int and 0 <= alias < len(inputs)):
            raise Garbage("an output that shares memory with no input")
        dtype = _text(header, "dtype")
        if data and len(data) != prod(shape) * _ITEM_SIZES.get(dtype, 0):
            raise Garbage("an output whose bytes do not fit its shape")
        outputs.append(
            RawTensor(
                dtype=dtype,
                shape=tuple(shape),
                contiguous=header.get("contiguous") is True,
                device=_text(header, "device"),
                data=data,
                aliases=None if alias is None else inputs[alias],
            )
        )
    return tuple(outputs)


def _with(outcome: Outcome, **changes: Any) -> Outcome:
    return Outcome(**{**vars(outcome), **changes})


def _timed(outcome: Outcome, started: float, findings: tuple[Finding, ...] = ()) -> Outcome:
    return _with(outcome, seconds=time.monotonic() - started, findings=(*outcome.findings, *findings))
