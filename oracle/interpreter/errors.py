"""What the layer itself raises inside a candidate's process."""

from __future__ import annotations

from triton.compiler.errors import CompilationError


class OutOfBounds(RuntimeError):
    """A kernel touched memory outside every live tensor. Raised before the access happens, which ends the launch."""


class Unsupported(RuntimeError):
    """The interpreter cannot run this (inline assembly, CUDA graphs): the candidate is unjudged, not failed."""


class KernelError(CompilationError):
    """Triton refuses something in a kernel's body. On a GPU the compiler would: hence its type."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.src, self.node, self.error_message, self.message = None, None, message, message

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return (type(self), (self.message,))
