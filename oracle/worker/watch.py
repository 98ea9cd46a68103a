"""Notices tampering from inside the candidate's process: forbidden attempts and replaced attributes.

Diagnostic: containment refuses most of it anyway and the judge relies on none of it. An attempt counts as the
candidate's own where its code asked for it, be it through the standard library or another package; what the caches
and compilers of Triton and torch do, and what a package does while it is being imported, is not.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import operator
import os
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from oracle.interpreter.state import CallState
from oracle.worker.isolation import import_path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PROCESS = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "pty.spawn"}
_SOCKET = {"socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"}
_MAX_FINDINGS = 20

_HARNESS = str(Path(__file__).resolve().parents[1]) + os.sep
_PATHS = [*import_path(), *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))]
_LIBRARIES = tuple({f"{path}{os.sep}" for path in (*_PATHS, *map(os.path.realpath, _PATHS))})
_OPENERS = (os.path.join("ctypes", ""), os.path.join("numpy", "ctypeslib"))  # open a library for whoever calls them
_COMPILERS = tuple(
    os.sep + package.replace("/", os.sep) for package in ("triton/", "torch/_inductor/", "torch/_dynamo/")
)
_WRAPPERS = (os.path.join("torch", "_compile.py"), os.path.join("torch", "_dynamo", ""))
# not triton.language: Triton itself replaces its functions while the interpreter runs
_WATCHED = (
    "torch",
    "torch.nn.functional",
    "torch.cuda",
    "torch.linalg",
    "torch.testing",
    "triton",
    "triton.runtime.jit",
    "triton.runtime.autotuner",
    "triton.testing",
    "time",
)

_SETTINGS = {"Storage"}  # what torch itself rebinds: torch.set_default_dtype sets torch.Storage


class Versions:
    """Whether dicts may have changed, without looking through them: CPython up to 3.12 counts every change of a dict in a
    field of its own (PEP 509), the fourth word of the object. Elsewhere they may always have."""

    def __init__(self, dicts: Iterable[dict[str, Any]]) -> None:
        self._words = [ctypes.c_uint64.from_address(id(each) + _VERSION_WORD) for each in dicts]
        self.keep()

    def keep(self) -> None:
        self._kept = [word.value for word in self._words]

    def moved(self) -> bool:
        return not _COUNTED or [word.value for word in self._words] != self._kept


def _counted() -> bool:
    """Whether this Python counts the changes of a dict where `Versions` looks."""
    tried: dict[str, Any] = {"a": 1}
    versions = Versions([tried])
    answers = []
    for change in (lambda: None, lambda: tried.update(a=2), lambda: tried.update(b=1), lambda: tried.pop("a")):
        change()
        answers.append([word.value for word in versions._words] != versions._kept)
        versions.keep()
    return answers == [False, True, True, True]


_VERSION_WORD = 24
_COUNTED = _counted()


class Space:
    """The functions, classes, modules and frozen sets of a module or class as they were. Compared after every call: made
    to be quick."""

    def __init__(self, owner: Any) -> None:
        self.name, self._owner = owner.__name__, owner
        attributes = _attributes(owner).items()
        before = {key: value for key, value in attributes if key not in _SETTINGS and _is_watched(value)}
        self._names, self._values = tuple(before), tuple(before.values())
        self._versions = Versions(_dicts(owner))

    def functions(self) -> Iterator[tuple[str, types.FunctionType]]:
        """Functions written in Python, whose code could be replaced while they stay the same objects."""
        pairs = zip(self._names, self._values, strict=True)
        return ((name, value) for name, value in pairs if isinstance(value, types.FunctionType))

    def changed(self) -> bool:
        if not self._versions.moved():
            return False
        get = _attributes(self._owner).get
        replaced = any(map(operator.is_not, map(get, self._names), self._values))
        if not replaced:  # a new attribute, or one that was put back
            self._versions.keep()
        return replaced

    def differences(self) -> list[str]:
        get = _attributes(self._owner).get
        now = ((name, value, get(name)) for name, value in zip(self._names, self._values, strict=True))
        return [name for name, value, found in now if found is not value and not _wrapped_by_torch(found, value)]


class Watch:
    """Collects findings (kind, message) of one process. Made in the warm parent, which no candidate has touched."""

    def __init__(self, harness: list[types.ModuleType]) -> None:
        """Remember the attributes as they are now. `harness`: modules of ours to watch beside torch's and Triton's."""
        modules = [sys.modules[name] for name in _WATCHED if name in sys.modules]
        spaces: list[Any] = [builtins, *modules, *harness, torch.Tensor, torch.nn.Module, CallState]
        self._spaces = [Space(space) for space in spaces]
        self._functions = {
            id(function): f"{space.name}.{name}" for space in self._spaces for name, function in space.functions()
        }
        self.findings: list[tuple[str, str]] = []
        self._noted: set[tuple[str, str]] = set()

    def listen(self) -> None:
        """From now on, note what Python reports of files, sockets, processes and replaced code. This cannot be undone."""
        sys.addaudithook(self._hook)

    def note(self, kind: str, message: str) -> None:
        if (kind, message) not in self._noted and len(self._noted) < _MAX_FINDINGS:
            self._noted.add((kind, message))
            self.findings.append((kind, message))

    def compare(self) -> None:
        """Note every watched attribute that is not what it was. (New attributes are no replacement.)"""
        for space in self._spaces:
            if space.changed():
                for attribute in space.differences():
                    self.note("tampering", f"replaced the attribute {space.name}.{attribute}")

    def take(self) -> list[tuple[str, str]]:
        """The findings so far; they are reported once."""
        found, self.findings = self.findings, []
        return found

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__setattr__":  # told of functions' code; asking each function for it would be told as well
            name = self._functions.get(id(arguments[0]))
            if name is not None and arguments[1] == "__code__":
                self.note("tampering", f"replaced the code of {name}")
            return
        if event == "ctypes.dlopen":
            if opened_itself(sys._getframe(1)):
                self.note("tampering", f"opened a shared library: {_shown(arguments[0] or 'the program')}")
            return
        if event == "open":
            flags = arguments[2]
            if not isinstance(flags, int) or not flags & _WRITING:
                return
            what = f"opened a file for writing: {_shown(arguments[0])}"
        elif event in _SOCKET:
            what = f"opened a socket ({event})"
        elif event in _PROCESS:
            what = f"started a process ({event})"
        else:
            return
        if candidate_asked(sys._getframe(1)):
            self.note("tampering", what)


def candidate_asked(frame: FrameType | None) -> bool:
    """Whether the candidate's own code stands behind the innermost frames, rather than a compiler or an import."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return False
        if name.startswith(_HARNESS):
            frame = frame.f_back
            continue
        if not _in_library(frame):
            return True
        if any(package in name for package in _COMPILERS):
            return False
        frame = frame.f_back
    return False


def opened_itself(frame: FrameType | None) -> bool:
    """Whether it is the candidate's own code that opens a library, and no package which that code uses."""
    while frame is not None and _in_library(frame) and any(part in frame.f_code.co_filename for part in _OPENERS):
        frame = frame.f_back
    return frame is not None and not _in_library(frame) and not frame.f_code.co_filename.startswith(_HARNESS)


def _in_library(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(_LIBRARIES) or name.startswith("<frozen ")


def _attributes(owner: Any) -> dict[str, Any]:
    """What a module or class holds, a class's bases included."""
    if not isinstance(owner, type):
        return vars(owner)
    merged: dict[str, Any] = {}
    for base in reversed(type.mro(owner)):
        merged.update(vars(base))
    return merged


def _dicts(owner: Any) -> list[dict[str, Any]]:
    """The dicts behind `_attributes`; a class shows its own only through a proxy."""
    if not isinstance(owner, type):
        return [vars(owner)]
    return [found for base in type.mro(owner) for found in gc.get_referents(vars(base)) if type(found) is dict]


def _wrapped_by_torch(found: Any, before: Any) -> bool:
    """torch._dynamo wraps `torch.manual_seed` when it is first imported."""
    file = found.__code__.co_filename if isinstance(found, types.FunctionType) else ""
    by_torch = file.startswith(_LIBRARIES) and any(part in file for part in _WRAPPERS)
    return by_torch and getattr(found, "__wrapped__", None) is before


def _is_watched(value: Any) -> bool:
    kinds = (types.ModuleType, property, types.GetSetDescriptorType, frozenset)
    return callable(value) or isinstance(value, kinds)


def _shown(path: Any) -> str:
    text = (
        os.fsdecode(path) if isinstance(path, (str, bytes)) else f"descriptor {path}" if isinstance(path, int) else "?"
    )
    return " ".join(text.split())[:120]
