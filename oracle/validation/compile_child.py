"""Tells which mutants of a kernel file are the same program as the original, on recorded calls.

A process of its own (`python -m oracle.validation.compile_child` without TRITON_INTERPRET): corpus files are trusted, so
it needs no containment. It reads one JSON object from stdin: {"entry", "original": source, "mutants": {name: source},
"calls": [call…]}, calls as `oracle.validation.compiled` describes them, the plain one first. It writes {name: bool}.

Two programs are the same on a call if they make the same launches (kernel name, grid, code, numbers by value, tensors by
dtype, shape, strides, place and contents) and return the same tensors. Contents are those that host code can give:
kernels do not run here, and fresh memory holds one known pattern; so a program whose host code reads values after a
launch is not called the same.

Compiling is what takes time, so it comes last and as little of it as will do: all calls are compared but for the code,
which is then compared once for each pair of kernels that the calls launch (`Codes`).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
import triton.compiler
from triton.runtime.jit import JITFunction

from oracle.compile_gate import compiling
from oracle.interpreter import redirect
from oracle.interpreter.state import current

STAGES = ("ttir", "ttgir", "llir", "ptx")
T = TypeVar("T")


@dataclass
class Trace:
    """What one call of a program does. `launched`: JSON values, but for the code; `kernels`: the code, one for each launch;
    `ended`: what it returns. `raised` or `read`: why it is not called the same as any other."""

    launched: list[Any] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    ended: Any = None
    raised: str = ""
    read: str = ""

    def alike(self, other: Trace) -> bool:
        """Whether all is the same but, perhaps, the code."""
        known = not (self.raised or self.read or other.raised or other.read)
        return known and (self.launched, self.ended) == (other.launched, other.ended)


@dataclass(frozen=True)
class Kernel:
    """What a launch compiles. Equal keys are equal code; `lower` begins to compile it."""

    key: str
    lower: Callable[[], compiling.Lowering] = field(compare=False)


class Recorder:
    """Turns values into JSON ones, equal for equal values. Storages are numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._storages: dict[int, int] = {}
        self._kept: list[torch.Tensor] = []  # so that no address is used twice

    def value(self, value: Any) -> Any:
        """Strides count only along dims that have a second element."""
        if not isinstance(value, torch.Tensor):
            return repr(value)
        self._kept.append(value)
        place = self._storages.setdefault(value.untyped_storage().data_ptr(), len(self._storages))
        strides = [stride for size, stride in zip(value.shape, value.stride(), strict=True) if size > 1]
        whole = value.contiguous()
        contents = ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())
        digest = hashlib.blake2b(contents, digest_size=8).hexdigest()
        return [str(value.dtype), list(value.shape), strides, value.storage_offset(), place, digest]


_recorder = Recorder()


def install() -> None:
    """Once per process: record instead of launching or compiling; fresh memory holds a known pattern."""
    compiling.install()
    triton.compiler.compile = _noted
    JITFunction.run = _recorded(JITFunction.run)
    torch._C._set_deterministic_algorithms(True)  # the public setter imports the inductor: seconds
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]


def _noted(source: Any, target: Any = None, options: Any = None, **_: Any) -> None:
    """Replaces `triton.compiler.compile`."""
    key = f"{source.hash()} {sorted(options.items())}"
    _recorder.trace.kernels.append(Kernel(key, lambda: compiling.Lowering(source, target, options)))


def _recorded(run: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        bound = self.signature.bind(*args, **{name: kwargs[name] for name in kwargs if name in self.arg_names})
        bound.apply_defaults()
        size = [int(n) for n in (grid({**kwargs, **bound.arguments}) if callable(grid) else grid)]
        with torch._C.DisableTorchFunction():  # looking at a value is no read of the program's
            values = {name: _recorder.value(value) for name, value in bound.arguments.items()}
        _recorder.trace.launched.append([self.__name__, warmup, size, values])
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    return recorded


def trace(source: Path, entry: str, call: dict[str, Any], config: int) -> Trace:
    """What a program does on a call, with that autotune configuration."""
    global _recorder
    _recorder = recorder = Recorder()
    compiling.begin(config)
    tensors = [_tensor(spec) for spec in call["tensors"]]
    recorder.trace.launched.append([recorder.value(tensor) for tensor in tensors])  # inputs have the first places
    args = [_argument(value, tensors) for value in call["positional"]]
    kwargs = {name: _argument(value, tensors) for name, value in call["keyword"].items()}
    try:
        with redirect.redirected(), compiling.reads:
            result = runpy.run_path(str(source), run_name="candidate")[entry](*args, **kwargs)
        results = result if isinstance(result, tuple | list) else (result,)
        recorder.trace.ended = [type(result).__name__, *(recorder.value(value) for value in results)]
    except (OSError, MemoryError):
        raise  # trouble of ours
    except Exception as error:
        recorder.trace.raised = f"{type(error).__name__}: {error}"
    recorder.trace.read = compiling.reads.seen
    return recorder.trace


def _tensor(spec: dict[str, Any]) -> torch.Tensor:
    """A tensor of the described dtype, shape, strides and offset, its storage filled with a pattern."""
    dtype = getattr(torch, spec["dtype"])
    pattern = torch.arange(spec["size"]) % (2 if spec["dtype"] == "bool" or not dtype.is_floating_point else 61)
    return pattern.to(dtype).as_strided(spec["shape"], spec["strides"], spec["offset"])


def _argument(value: dict[str, Any], tensors: list[torch.Tensor]) -> Any:
    return tensors[value["tensor"]] if "tensor" in value else _plain(value["json"])


def _plain(value: Any) -> Any:
    """A keyword's Python value: a list stands for a tuple, "torch.float16" for that dtype."""
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return getattr(torch, value.removeprefix("torch.")) if isinstance(value, str) and value[:6] == "torch." else value


class Codes:
    """Compares what kernels compile to; each kernel is taken to Triton's own IR once, each pair of different texts
    further once."""

    def __init__(self) -> None:
        self._texts: dict[str, str | None] = {}
        self._same: dict[tuple[str, str], bool] = {}

    def same(self, pairs: Iterable[tuple[Kernel, Kernel]]) -> bool:
        """Whether each right kernel and the other beside it are the same code: first all that Triton's IR tells, then the
        costly rest. A kernel that the compiler refuses is the same as none."""
        unequal: dict[tuple[str, str], tuple[Kernel, Kernel]] = {}
        for right, other in pairs:
            want, got = self._text(right), self._text(other)
            if want is None:
                raise RuntimeError("the right kernel does not compile")
            if got is None:
                return False
            if want != got:
                unequal.setdefault((want, got), (right, other))
        return all(self._lowered_same(texts, *pair) for texts, pair in unequal.items())

    def _text(self, kernel: Kernel) -> str | None:
        """The options, and the module in Triton's IR: the same program wherever these are the same. None if refused."""
        if kernel.key not in self._texts:
            self._texts[kernel.key] = _unless_refused(lambda: "\n".join(_state(kernel.lower(), STAGES[0])))
        return self._texts[kernel.key]

    def _lowered_same(self, texts: tuple[str, str], a: Kernel, b: Kernel) -> bool:
        if texts not in self._same:
            self._same[texts] = bool(_unless_refused(lambda: lowered_same(a.lower(), b.lower())))
        return self._same[texts]


def lowered_same(a: compiling.Lowering, b: compiling.Lowering) -> bool:
    """Whether two kernels become the same at any stage down to PTX: from there on they are one program."""
    return a.options == b.options and any(_state(a, stage) == _state(b, stage) for stage in STAGES)


def _state(kernel: compiling.Lowering, stage: str) -> tuple[str, str]:
    """All that the stages after this one go by. Names of values and places in source files are not among it."""
    module = kernel.to(stage)
    return str(kernel.metadata), module if isinstance(module, str) else module.str_nodebug()


def _unless_refused(compile: Callable[[], T]) -> T | None:
    try:
        return compile()
    except (OSError, MemoryError):
        raise  # trouble of ours
    except Exception:
        return None


class Comparison:
    """One original on its calls, and the mutants that are held against it."""

    def __init__(self, original: Path, entry: str, calls: list[dict[str, Any]]) -> None:
        self._original, self._entry, self._calls = original, entry, calls
        self._right: dict[tuple[int, int], Trace] = {}
        self._codes = Codes()

    def same(self, mutant: Path) -> bool:
        """Whether a mutant is the same program on every call."""
        pairs: dict[tuple[Kernel, Kernel], None] = {}
        for place, config in self._runs():
            right = self._traced(place, config)
            found = trace(mutant, self._entry, self._calls[place], config)
            if not right.alike(found):
                return False
            pairs |= dict.fromkeys(zip(right.kernels, found.kernels, strict=True))
        return self._codes.same(pairs)

    def _runs(self) -> Iterator[tuple[int, int]]:
        """Every call with every autotune configuration that the original has there."""
        for place in range(len(self._calls)):
            config, configs = 0, 1
            while config < configs:
                yield place, config
                config, configs = config + 1, max(configs, current.configs)

    def _traced(self, place: int, config: int) -> Trace:
        if (place, config) not in self._right:
            right = trace(self._original, self._entry, self._calls[place], config)
            if right.raised:
                raise RuntimeError(f"the right kernel raises on call {place}: {right.raised}")
            self._right[place, config] = right
        return self._right[place, config]


def main() -> None:
    order = json.load(sys.stdin)
    install()
    with tempfile.TemporaryDirectory() as folder:

        def path(name: str, source: str) -> Path:
            file = Path(folder, f"{name}.py")
            file.write_text(source)
            return file

        comparison = Comparison(path("original", order["original"]), order["entry"], order["calls"])
        found = {name: comparison.same(path(name, source)) for name, source in order["mutants"].items()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
