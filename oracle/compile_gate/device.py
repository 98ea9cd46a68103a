"""The device of processes in which launches only compile (see `oracle.worker.device`)."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
import triton

from oracle.compile_gate import compiling
from oracle.interpreter import redirect, selftest
from oracle.interpreter.state import current
from oracle.worker.device import Ended
from oracle.worker.interpreted import Interpreted, _double
from oracle.worker.policies import POLICIES


class Compiling(Interpreted):
    """Tensors as on the CPU device; what a call finds is what the compiler refuses."""

    policy = POLICIES["compiler"]

    def warm(self) -> dict[str, Any]:
        """Compile a first kernel: the compiler's own start is then behind every process."""
        torch.set_num_threads(1)
        selftest.check_supported()
        compiling.install()
        x = torch.arange(5, dtype=torch.float32)
        compiling.begin(0)
        with self.running():
            _double[(2,)](x, torch.empty_like(x), 5, BLOCK=4)
        if current.launches != 1 or current.findings or not compiling._seen:
            raise RuntimeError(f"the compiler's first kernel went wrong: {current.findings}")
        return {"torch": torch.__version__, "triton": triton.__version__}

    def running(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        stack.enter_context(redirect.redirected())
        stack.enter_context(compiling.reads)
        return stack

    def begin(self, call: dict[str, Any]) -> None:
        compiling.begin(call["config"])

    def end(self) -> Ended:
        return Ended(current.launches, list(current.findings), current.configs, current.unsupported or "")


DEVICE = Compiling()
