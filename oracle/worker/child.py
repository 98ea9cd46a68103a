"""The life of one candidate's process: contain itself, execute the source, serve calls until the judge ends it."""

from __future__ import annotations

import _thread
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from oracle.worker import isolation, outputs
from oracle.worker.candidate import Candidate, Raised
from oracle.worker.device import Columns, Device, Ended
from oracle.worker.held import fitting, only_what_follows
from oracle.worker.isolation import Cell
from oracle.worker.outputs import examine, guarded
from oracle.worker.watch import Watch
from oracle.worker.wire import ARENA_BYTES, MAX_PAYLOAD, Closed, pack, read, write

CHANNEL, ARENA = 3, 4  # descriptors, once contained
OVERWRITTEN = ("aliased_output", "the result of an earlier call was overwritten by this one")
THREAD_WAIT = 0.05  # seconds given to threads left running, to show whether they still write outputs
_exit, _sleep, _listdir, _python_threads = os._exit, time.sleep, os.listdir, _thread._count
_now = time.perf_counter


def watch() -> Watch:
    """Made in the warm parent, when everything is patched: what the modules were like before any candidate."""
    return Watch([module for name, module in sys.modules.items() if name.partition(".")[0] == "oracle"])


def live(channel: int, arena: int, cell: Cell, layers: list[str], device: Device, watch: Watch) -> NoReturn:
    """Never returns: the process ends when the judge closes the channel, or when the candidate ends it."""
    try:
        os.setsid()
        settle(channel, arena)
        try:
            isolation.contain(cell, layers)
            memory = memoryview(mmap.mmap(ARENA, ARENA_BYTES))
            os.close(ARENA)
            os.chdir(cell.scratch)
        except OSError as error:
            write(CHANNEL, pack({"type": "uncontained", "reason": str(error)}))
            _exit(1)
        write(CHANNEL, pack({"type": "started"}))
        Server(cell.program, memory, device, watch).serve()
    except Closed:
        pass
    finally:
        _exit(0)


def settle(channel: int, arena: int) -> None:
    """Put the two descriptors that are kept where containment expects them."""
    high = [os.dup(fd) for fd in (channel, arena)]
    while min(high) <= ARENA:
        high = [os.dup(fd) for fd in high]
    for source, target in zip(high, (CHANNEL, ARENA), strict=True):
        os.dup2(source, target, inheritable=False)


class Server:
    def __init__(self, path: str, arena: memoryview, device: Device, watch: Watch) -> None:
        self.path, self.arena, self.device = path, arena, device
        self.watch = watch
        self._turn = threading.Lock()
        self._running = False  # whether the candidate's code is: only then may the device's word of compiling be sent
        self._earlier = outputs.Earlier(device)
        self._seconds = 0.0  # that the candidate's code ran at its last turn
        device.told = self._compiling

    def serve(self) -> None:
        first = read(CHANNEL)
        with open(self.path, "w", encoding="utf-8", errors="replace") as file:
            file.write(first["source"])
        self.candidate = Candidate(self.path, first["source"])
        sys.path[:] = isolation.import_path()
        sys.argv[:] = [self.path]
        try:
            self.device.start()
        except Exception as error:
            self._send({"type": "unready", "reason": f"{type(error).__name__}: {error}"})
            _exit(1)
        self._send({"type": "ready"})
        self.threads = self._threads()
        self.watch.listen()
        only_what_follows()
        self._send(self._load(first["entry"]))
        while True:
            message = read(CHANNEL)
            self._answer(message)

    def _load(self, entry: str) -> dict[str, Any]:
        raised: Raised | None
        try:
            with self._candidate_runs():
                raised = self.candidate.load(entry)
        except BaseException as error:
            raised = self.candidate.word(error, "import_error")
        self.watch.compare()
        return {"type": "loaded", **_raised(raised), "findings": self.watch.take(), "seconds": self._seconds}

    def _answer(self, message: dict[str, Any]) -> None:
        """Run one call and send what came of it."""
        tensors = self.device.place(self.arena, message["inputs"])
        positional = [_value(item, tensors) for item in message["positional"]]
        keyword = {name: _value(item, tensors) for name, item in message["keyword"].items()}
        self.device.begin(message)
        columns: Columns = ([], [], [])
        if message["timed"]:
            result, raised, columns = self._repeat(tensors, message["timed"], positional, keyword)
        else:
            result, raised = self._call(positional, keyword)
        ended, overwritten = Ended(), False
        parts: list[bytes] = []
        reply: dict[str, Any] = {"type": "returned", "structure": "None", "outputs": [], "late": False}
        try:
            with guarded():
                returned = examine(result, self.device) if raised is None else None
                early = self._early(returned)
                waiting = _now()
                self.device.synchronize()
                self._seconds += _now() - waiting
                ended = self.device.end()
                if returned is not None:
                    reply.update(structure=returned.structure, outputs=returned.headers)
                    parts = [fetch() for fetch in returned.fetchers]
                    reply["late"] = early not in (None, parts) or self._late(returned, parts)
                    if not message["timed"]:  # which says nothing of memory
                        overwritten = self._earlier.overwritten()
                        self._earlier.keep(returned, parts)
                self.device.give_back()
        except BaseException as error:  # a device error shows at the synchronisation; memory ends at a copy
            raised = self._broken(error, raised)
        if ended.unsupported:  # even where the candidate caught the refusal: what it did then is no judgement of it
            raised = Raised("unsupported", ended.unsupported, raised.traceback if raised else "")
        if raised is not None:
            reply.update(outputs=[], late=False)
            parts = []
        self.watch.compare()
        reply.update(_raised(raised), launches=ended.launches, configs=ended.configs, seconds=self._seconds)
        held = fitting(ended.held, MAX_PAYLOAD - sum(map(len, parts)))
        reply.update(held=len(held), times=columns)
        reply["findings"] = [*self.watch.take(), *ended.findings, *([OVERWRITTEN] if overwritten else [])]
        self._send(reply, [*parts, *held])

    def _call(self, positional: list[Any], keyword: Mapping[str, Any]) -> tuple[Any, Raised | None]:
        try:
            with self._candidate_runs():
                return self.candidate.function(*positional, **keyword), None
        except BaseException as error:
            return None, self.candidate.word(error, "launch_error")

    def _repeat(
        self, tensors: list[Any], offsets: list[int], positional: list[Any], keyword: Mapping[str, Any]
    ) -> tuple[Any, Raised | None, Columns]:
        """The same again and again, timed; the judge's clock runs between the two signs."""
        self._send({"type": "timing"})
        try:
            with self._candidate_runs():
                function = self.candidate.function
                result, columns = self.device.repeat(tensors, offsets, lambda: function(*positional, **keyword))
                return result, None, columns
        except BaseException as error:
            return None, self.candidate.word(error, "launch_error"), ([], [], [])
        finally:
            with self._turn:
                self._send({"type": "timing"})

    def _broken(self, error: BaseException, raised: Raised | None) -> Raised:
        """What counts where waiting for the device or reading from it failed, perhaps after the call itself had `raised`:
        a device that is lost explains whatever was raised before."""
        worded = self.candidate.word(error, "faulted" if self.device.asynchronous else "launch_error")
        if raised is None:
            return worded
        return Raised(worded.kind, worded.message, raised.traceback) if worded.kind == "faulted" else raised

    @contextmanager
    def _candidate_runs(self) -> Iterator[None]:
        self._running = True
        started = _now()
        try:
            with self.device.running():
                yield
        finally:
            self._seconds = _now() - started
            with self._turn:
                self._running = False

    def _compiling(self, begun: bool) -> None:
        """The device began or ended to compile a kernel, perhaps in a thread of the candidate's."""
        with self._turn:
            if self._running:
                self._send({"type": "compiling", "begun": begun})

    def _early(self, returned: outputs.Returned | None) -> list[bytes] | None:
        """Outputs as the caller's stream sees them, before anything else on the device is waited for."""
        if returned is None or not self.device.asynchronous:
            return None
        return [fetch() for fetch in returned.fetchers]

    def _late(self, returned: outputs.Returned, parts: list[bytes]) -> bool:
        """Whether outputs still change after everything was synchronised: threads left running are given a moment."""
        if self._threads() <= self.threads:
            return False
        _sleep(THREAD_WAIT)
        self.device.synchronize()
        return [fetch() for fetch in returned.fetchers] != parts

    def _threads(self) -> int:
        """Threads of this process; those of Python alone where a driver starts threads of its own."""
        return _python_threads() if self.device.asynchronous else _threads()

    def _send(self, message: dict[str, Any], parts: list[bytes] | tuple[()] = ()) -> None:
        write(CHANNEL, pack(message, parts))


def _raised(raised: Raised | None) -> dict[str, str]:
    if raised is None:
        return {"kind": "", "message": "", "traceback": ""}
    return {"kind": raised.kind, "message": raised.message, "traceback": raised.traceback}


def _threads() -> int:
    try:
        return len(_listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _value(item: Mapping[str, Any], tensors: list[Any]) -> Any:
    """An argument: {"tensor": index} or {"json": value}."""
    return tensors[item["tensor"]] if "tensor" in item else _from_json(item["json"])


def _from_json(value: Any) -> Any:
    """A list stands for a tuple, "torch.float16" for that dtype."""
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    if isinstance(value, str) and value.startswith("torch."):
        found = getattr(torch, value.removeprefix("torch."), None)
        return found if isinstance(found, torch.dtype) else value
    return value
