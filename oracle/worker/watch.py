"""Notices tampering from inside the candidate's process: forbidden attempts and replaced attributes.

Diagnostic: containment refuses most of it anyway and the judge relies on none of it. An attempt counts as the
candidate's own where its code asked for it, be it through the standard library or another package; what Triton's own
cache and compiler do, and what a package does while it is being imported, is not.
"""

from __future__ import annotations

import builtins
import os
import sys
import sysconfig
import types
from pathlib import Path
from types import FrameType
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PROCESS = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "pty.spawn"}
_SOCKET = {"socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"}
_MAX_FINDINGS = 20

_HARNESS = str(Path(__file__).resolve().parents[1]) + os.sep
_PATHS = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_LIBRARIES = tuple({f"{path}{os.sep}" for path in (*_PATHS, *map(os.path.realpath, _PATHS))})
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
_REPLACEABLE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType)


class Watch:
    """Collects findings (kind, message) of one process. Create it before the candidate's source is executed."""

    def __init__(self) -> None:
        self.findings: list[tuple[str, str]] = []
        self._armed = False

    def arm(self, harness: list[types.ModuleType]) -> None:
        """Start to listen, and remember the attributes as they are now. `harness`: modules of ours to watch too."""
        import torch

        modules = [sys.modules[name] for name in _WATCHED if name in sys.modules]
        spaces: list[Any] = [builtins, *modules, *harness, torch.Tensor, torch.nn.Module]
        self._before = [(space.__name__, vars(space), _replaceable(vars(space))) for space in dict.fromkeys(spaces)]
        self._armed = True
        sys.addaudithook(self._hook)

    def note(self, kind: str, message: str) -> None:
        if (kind, message) not in self.findings and len(self.findings) < _MAX_FINDINGS:
            self.findings.append((kind, message))

    def compare(self) -> None:
        """Note every watched attribute that is not what it was. (New attributes are no replacement.)"""
        for name, space, before in self._before:
            for attribute, (value, code) in before.items():
                now = space.get(attribute)
                if now is not value or (code is not None and value.__code__ is not code):
                    self.note("tampering", f"replaced the attribute {name}.{attribute}")

    def take(self) -> list[tuple[str, str]]:
        """The findings so far; they are reported once."""
        found, self.findings = self.findings, []
        return found

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
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
    """Whether the candidate's own code stands behind the innermost frames, rather than Triton or an import."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return False
        if name.startswith(_HARNESS):
            frame = frame.f_back
            continue
        library = name.startswith(_LIBRARIES) or name.startswith("<frozen ")
        if library and f"{os.sep}triton{os.sep}" in name:
            return False
        if not library:
            return True
        frame = frame.f_back
    return False


def _replaceable(space: Any) -> dict[str, tuple[Any, Any]]:
    """Functions, classes and modules of a namespace, with the code of those written in Python."""
    return {
        name: (value, getattr(value, "__code__", None) if isinstance(value, types.FunctionType) else None)
        for name, value in space.items()
        if isinstance(value, _REPLACEABLE)
    }


def _shown(path: Any) -> str:
    text = (
        os.fsdecode(path) if isinstance(path, (str, bytes)) else f"descriptor {path}" if isinstance(path, int) else "?"
    )
    return " ".join(text.split())[:120]
