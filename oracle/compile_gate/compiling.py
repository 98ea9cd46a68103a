"""Launches that compile for sm_90 and run nothing, in a process without a GPU and without TRITON_INTERPRET.

The candidate's own host code runs on CPU tensors, as in the interpreter; each `kernel[grid](...)` compiles the kernel for
the arguments at hand, so that what the host code returns is meaningless. A launch after host code has read values that a
kernel should have computed is not compiled: its arguments may be meaningless too.

Each kernel is taken to Triton's own IR once per types, constants and options: nearly every refusal is there, after about
10 ms. A kernel whose tiles may need more shared memory than there is goes on until that is allocated; the rest of the way
to machine code costs ten to a thousand times as much and is not gone. No file is written and no program started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from math import prod
from typing import Any

import triton.compiler
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import ir, nvidia
from triton.compiler.errors import CompilationError
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from oracle.compile_gate import CAUGHT, REFUSED, TROUBLE, UNSEEN
from oracle.errors import InfrastructureError
from oracle.interpreter import cuda, driver, launches, redirect
from oracle.interpreter.absent import absent_api
from oracle.interpreter.host_compute import ALLOWED
from oracle.interpreter.state import current

PTX = 83  # version of the assembly language that is aimed at; Triton would ask ptxas, a program

_READ = frozenset(
    ["item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__contains__", "__array__"]
)
_TILE = re.compile(r"tensor<((?:\d+x)+)([^,>]+)")
_launch = JITFunction.run
_seen: set[tuple[Any, ...]] = set()  # kernels, with types, constants and options, that compile
_lowered: dict[
    tuple[Any, ...], int
] = {}  # bytes of the largest tile with which a kernel was found to fit, by its options


class Reads(TorchFunctionMode):
    """Notices, after a launch, that host code reads or computes with values: which ones does not matter."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").partition(".")[0]
        if current.launches and (name in _READ or not (name in ALLOWED or name.startswith(("is_", "_is_")))):
            self.seen = self.seen or name
        return func(*args, **(kwargs or {}))


reads = Reads()


def install() -> None:
    """Once per process. Raises InfrastructureError in a process that interprets."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise InfrastructureError("the compile gate needs a process without TRITON_INTERPRET")
    cuda.install()
    redirect.install()
    driver.install()
    Autotuner.run = launches.autotuned
    JITFunction.run = run
    triton.compiler.compile = compiled


def begin(config: int) -> None:
    """Start one call, with that autotune configuration."""
    current.restart(config=config)
    reads.seen = ""


def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """Replaces `JITFunction.run`: compiles and never launches. What the compiler refuses is found and raised."""
    if reads.seen:
        current.find(UNSEEN, f"`{self.__name__}`, launched after host code called {reads.seen}")
        return launches.Compiled(self, kwargs)
    current.launches += not warmup
    try:
        _launch(self, *args, grid=grid, warmup=True, **kwargs)
    except (OSError, MemoryError) as error:
        current.find(TROUBLE, f"{type(error).__name__}: {error}")
        raise
    except Exception as error:
        reason = refusal(error)
        absent = absent_api(reason)
        if absent:
            current.unsupported = absent
        else:
            current.find(REFUSED, f"kernel `{self.__name__}`: {reason}")
        raise
    if any(kind == REFUSED for kind, _ in current.findings):
        current.find(CAUGHT, f"kernel `{self.__name__}` compiles")
    return launches.Compiled(self, kwargs)


class Lowering:
    """One kernel, for given types, constants and options, on its way through the compiler's stages."""

    def __init__(self, source: Any, target: Any, options: dict[str, Any]) -> None:
        """Not begun: the stages start with the first `to`. Raises what Triton raises for options that it refuses."""
        self._source, self._target = source, target
        self._backend = triton.compiler.make_backend(target)
        self.options = self._backend.parse_options({**options, "ptx_version": options.get("ptx_version") or PTX})
        self.metadata: dict[str, Any] = {"target": target, **vars(self.options)}
        self.module: Any = None
        self.stages: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}

    def to(self, stage: str) -> Any:
        """The module after one more stage: "ttir" first, then "ttgir", "llir", "ptx". Raises what Triton raises."""
        if self.module is None:
            self.module = self._parsed()
        self.module = self.stages[stage](self.module, self.metadata)
        return self.module

    def _parsed(self) -> Any:
        self._backend.add_stages(self.stages, self.options, self._source.language)
        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        kinds = self._backend.get_codegen_implementation(self.options), self._backend.get_module_map()
        return self._source.make_ir(self._target, self.options, *kinds, context)


def compiled(source: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
    """Replaces `triton.compiler.compile`: to Triton's IR, and on where shared memory may run out."""
    kernel = Lowering(source, target, options)
    constants = {place: getattr(value, "cache_key", repr(value)) for place, value in source.constants.items()}
    key = (source.fn, str(source.signature), str(sorted(constants.items())), str(kernel.options))
    if key in _seen:
        return None
    group, tile = (source.fn, str(kernel.options)), largest_tile(str(kernel.to("ttir")))
    if tile * max(1, kernel.options.num_stages) > driver.SHARED_MEMORY and tile > _lowered.get(group, 0):
        shared = shared_memory(lambda: kernel.to("llir"), kernel.to("ttgir"))
        if shared > driver.SHARED_MEMORY:
            raise OutOfResources(shared, driver.SHARED_MEMORY, "shared memory")
        _lowered[group] = tile
    _seen.add(key)
    return None


def largest_tile(text: str) -> int:
    """Bytes of the largest tile of two or more dims in a module: a row by itself stays in registers."""
    tiles = {match.groups() for match in _TILE.finditer(text)}
    return max((_bytes(*tile) for tile in tiles if tile[0].count("x") > 1), default=0)


class Allocated(Exception):
    """Raised in place of the passes that follow the allocation of shared memory."""


def shared_memory(lower: Callable[[], object], module: Any) -> int:
    """Bytes of shared memory that a module of Triton's GPU IR needs: lowers it until they are allocated, which takes
    milliseconds; the rest of the way to LLVM may take minutes."""
    allocate = nvidia.passes.ttgpuir.add_allocate_shared_memory_nv

    def stop(passes: Any, *args: Any) -> None:
        allocate(passes, *args)
        passes.run(module, "allocate_shared_memory")
        raise Allocated

    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv = stop
    try:
        with suppress(Allocated):
            lower()
    finally:
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv = allocate
    return module.get_int_attr("ttg.shared")


def _bytes(sizes: str, kind: str) -> int:
    return prod(map(int, sizes[:-1].split("x"))) * _bits(kind) // 8


def _bits(kind: str) -> int:
    number = re.fullmatch(r"b?[fi](\d+).*", kind)
    return max(8, int(number.group(1))) if number else 64  # a pointer; float8 types are named f8…


def refusal(error: BaseException) -> str:
    """One line: the innermost reason, and the kernel's line where Triton names one."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    root = chain[-1]
    text = " ".join(str(getattr(root, "error_message", None) or root).split())
    place = next((line for e in reversed(chain) if (line := _line(e))), "")
    return f"{type(root).__name__}: {text[:600]}" + (f" (at `{place}`)" if place else "")


def _line(error: BaseException) -> str:
    """The kernel's own line that an error names, "" where it names none."""
    lines = (error.src or "").split("\n") if isinstance(error, CompilationError) else []
    number = getattr(getattr(error, "node", None), "lineno", 0)
    return lines[number - 1].strip()[:160] if 0 < number <= len(lines) else ""
