"""Run once after patching: does this Triton version behave as the layer expects? Private interfaces are patched, so a
version that moved one must be refused with a clear line, and never judge a candidate wrongly."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from oracle.errors import InfrastructureError
from oracle.interpreter.errors import OutOfBounds
from oracle.interpreter.memory import memory
from oracle.interpreter.redirect import redirected
from oracle.interpreter.state import current

SUPPORTED = ((3, 6), (3, 10))  # from, below
_NEEDED = (
    "InterpreterBuilder InterpretedFunction GridExecutor ReduceOps ScanOps TensorHandle interpreter_builder "
    "interpreter_semantic _get_np_dtype _implicit_cvt _interpreter _ir _patch_attr _patch_builtin _patch_lang "
    "_LangPatchScope"
)


@triton.jit
def _arithmetic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n and lanes >= 0
    x = tl.load(x_ptr + lanes, mask=inside, other=0.0)
    y = libdevice.tanh(x.to(tl.float32)).to(tl.bfloat16)
    tl.store(out_ptr + lanes, x * y + 0.5, mask=inside)


@triton.jit
def _last(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n)
    tl.store(out_ptr, tl.program_id(0).to(tl.float32) + tl.sum(x, 0))


@triton.jit
def _beyond(x_ptr, n):
    tl.store(x_ptr + n, 1.0)


def check_version() -> None:
    """Before anything is patched, in a process that interprets. Raises InfrastructureError."""
    import triton.runtime.interpreter as stock

    check_supported()
    if not isinstance(tl.sum, stock.InterpretedFunction):
        raise InfrastructureError("set TRITON_INTERPRET=1 before triton is imported")
    missing = [name for name in _NEEDED.split() if not hasattr(stock, name)]
    if missing:
        raise InfrastructureError(f"triton {triton.__version__} has no {', '.join(missing)} in its interpreter")


def check_supported() -> None:
    """Whether this Triton is one that this package was tried with. Raises InfrastructureError."""
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if not SUPPORTED[0] <= version < SUPPORTED[1]:
        low, high = (".".join(map(str, bound)) for bound in SUPPORTED)
        raise InfrastructureError(f"triton {triton.__version__} is not supported: install triton>={low},<{high}")


def check_behaviour() -> None:
    """After patching: a few kernels whose results tell every patch. Raises InfrastructureError with the first wrong."""
    try:
        wrong = _first_wrong()
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    finally:
        current.restart()
        memory.restart([])
    if wrong:
        raise InfrastructureError(f"the interpreter of triton {triton.__version__} failed its self-test: {wrong}")


def _first_wrong() -> str:
    x = torch.linspace(-3, 3, 21).to(torch.bfloat16)
    with redirected():
        current.restart()
        out = torch.empty_like(x)
        _arithmetic[(3,)](x, out, 21, BLOCK=8)
    if not torch.equal(out, x * torch.tanh(x.float()).to(torch.bfloat16) + 0.5):
        return "bfloat16 arithmetic"
    if current.launches != 1:
        return "launches are not counted"
    return _wrong_order() or _wrong_lanes() or _wrong_bounds()


def _wrong_order() -> str:
    x, out = torch.zeros(4), torch.zeros(1)
    current.restart(reverse=True)
    _last[(3,)](x, out, 4, BLOCK=4)
    return "" if out.item() == 0 else "reversed order of programs"


def _wrong_lanes() -> str:
    x, out = torch.ones(3), torch.zeros(1)
    current.restart(fill_lanes=True)
    _last[(1,)](x, out, 3, BLOCK=4)
    return "" if out.isnan().item() else "undefined lanes are not filled"


def _wrong_bounds() -> str:
    x = torch.zeros(4)
    try:
        _beyond[(1,)](x, 4)
    except OutOfBounds:
        return ""
    return "an access out of bounds was not noticed"
