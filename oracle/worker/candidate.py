"""The candidate's module: executes its source from a file of its own, and words what it raises.

No code of the candidate's runs while an exception is worded: only exceptions of Python, torch and Triton are asked for
their text, and only where it is made of plain values.
"""

from __future__ import annotations

import linecache
import sys
import types
from dataclasses import dataclass
from typing import Any

from triton.compiler.compiler import compile as triton_compile
from triton.compiler.errors import CompilationError
from triton.runtime.errors import InterpreterError, OutOfResources, PTXASError

from oracle.interpreter.errors import OutOfBounds
from oracle.worker.outputs import _name

NAME = "candidate"
_COMPILE = triton_compile.__code__
_MESSAGE, _TRACEBACK, _FRAMES = 500, 4000, 20
_TRUSTED = ("builtins", "torch", "triton", "numpy", "oracle", "importlib", "ast")
_PLAIN = (str, int, float, bool, bytes, type(None))
_MEMORY_WORDS = ("not enough memory", "can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc")
# errors after which a CUDA context answers every call with the same error
_LOST_WORDS = (
    *(
        "illegal memory access",
        "misaligned address",
        "illegal instruction",
        "illegal address",
        "invalid program counter",
    ),
    *("device-side assert", "unspecified launch failure", "hardware stack error", "operation not supported on global"),
    *("launch timed out", "uncorrectable ECC", "unknown error", "context is destroyed", "cluster target block"),
)


@dataclass(frozen=True)
class Raised:
    """An exception, reduced: `kind` a failure kind, "memory_limit", "exited" or "faulted" (the GPU)."""

    kind: str
    message: str
    traceback: str


@dataclass
class Candidate:
    path: str
    source: str
    function: Any = None

    def load(self, entry: str) -> Raised | None:
        """Execute the source as a module of its own; None where that defines a callable `entry`."""
        module = types.ModuleType(NAME)
        module.__file__ = self.path
        sys.modules[NAME] = module
        linecache.cache[self.path] = (len(self.source), None, self.source.splitlines(True), self.path)
        exec(compile(self.source, self.path, "exec", dont_inherit=True), module.__dict__)
        self.function = module.__dict__.get(entry)
        if callable(self.function):
            return None
        return Raised("missing_entry_point", f"the source defines no function {entry!r}", "")

    def word(self, error: BaseException, phase: str) -> Raised:
        """Reduce what the candidate raised while `phase` ("import_error" or "launch_error")."""
        if type(error) is InterpreterError and error.__cause__ is not None:
            return self.word(error.__cause__, phase)
        text = safe_text(error)
        kind = phase
        if isinstance(error, MemoryError) or any(word in text.lower() for word in _MEMORY_WORDS):
            kind = "memory_limit"
        elif isinstance(error, SystemExit):
            kind = "exited"
        elif isinstance(error, OutOfBounds):
            kind = "out_of_bounds"
        elif "CUDA" in text and any(word in text for word in _LOST_WORDS):
            kind = "faulted"
        elif _is_compiler_error(error):
            kind = "compile_error"
        name = _name(type(error))
        return Raised(kind, _one_line(f"{name}: {text}" if text else name), self.frames(error))

    def frames(self, error: BaseException) -> str:
        """The traceback's frames in the candidate's own file, the cause's (a kernel's line) last."""
        lines = self.source.splitlines()
        found: list[str] = []
        seen: BaseException | None = error
        for _ in range(4):
            if seen is None:
                break
            step = seen.__traceback__
            while step is not None and len(found) < 200:
                if step.tb_frame.f_code.co_filename == self.path:
                    number = step.tb_lineno
                    text = lines[number - 1].strip()[:160] if 0 < number <= len(lines) else ""
                    line = f"line {number}, in {step.tb_frame.f_code.co_name}: {text}"
                    if line not in found:
                        found.append(line)
                step = step.tb_next
            seen = seen.__cause__
        return "\n".join(found[-_FRAMES:])[:_TRACEBACK]


def safe_text(error: BaseException) -> str:
    """An exception's text without running code that is not Python's, torch's or Triton's."""
    kind = type(error)
    module = kind.__dict__.get("__module__", "builtins")
    trusted = isinstance(module, str) and module.partition(".")[0] in _TRUSTED
    arguments = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    plain = all(type(argument) in _PLAIN for argument in arguments)
    if trusted and (plain or module != "builtins"):
        try:
            return str(error)[: 4 * _MESSAGE]
        except Exception:
            return ""
    return ", ".join(str(a) if type(a) in _PLAIN else f"<{_name(type(a))}>" for a in arguments)[: 4 * _MESSAGE]


def _is_compiler_error(error: BaseException) -> bool:
    return isinstance(error, (CompilationError, OutOfResources, PTXASError)) or _while_compiling(error)


def _while_compiling(error: BaseException) -> bool:
    """Whether it came out of Triton's compiler, whose passes raise bare RuntimeErrors."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code is not _COMPILE:
        step = step.tb_next
    return step is not None


def _one_line(text: str) -> str:
    """Whitespace folded; the middle left out where the text is long (a compiler's reason comes last)."""
    folded = " ".join(text.split())
    half = _MESSAGE // 2
    return folded if len(folded) <= _MESSAGE else f"{folded[:half]} … {folded[-half:]}"
