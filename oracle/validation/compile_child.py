"""Compiles a kernel file and its mutants on recorded calls; tells which are refused and which are the same program.

A process of its own (`python -m oracle.validation.compile_child` without TRITON_INTERPRET, with a private
TRITON_CACHE_DIR): corpus files are trusted, so it needs no containment. It reads one JSON object from stdin:
{"entry", "original": source, "mutants": {name: source}, "calls": [call…], "compare": bool}, calls as
`oracle.validation.compiled` describes them, the plain one first. It writes {name: {"refused": text or null,
"same": bool or null}}: refused on the first call; with "compare", whether it is the same program on all calls.

Two programs are the same on a call if they make the same launches (kernel name, grid, PTX, numbers by value, tensors by
dtype, shape, strides, place and contents) and return the same tensors. Contents are those that host code can give:
kernels do not run here, and fresh memory holds one known pattern. Without "compare" compilation ends with Triton's own
IR, which is where nearly all refusals are.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import runpy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from oracle.interpreter import cuda, driver, redirect
from oracle.interpreter.state import current

RAISED = "raised"


@dataclass
class Recorder:
    """What one call of a program launches. Storages are numbered in the order in which they are met."""

    launches: list[Any] = field(default_factory=list)
    refused: str | None = None
    _storages: dict[int, int] = field(default_factory=dict)
    _kept: list[torch.Tensor] = field(default_factory=list)  # so that no address is used twice

    def value(self, value: Any) -> Any:
        """A JSON value, equal for equal arguments; strides count only along dims that have a second element."""
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


def install(compare: bool) -> None:
    """Once per process: compile and record instead of launching; fresh memory holds a known pattern."""
    cuda.install()
    redirect.install()
    driver.install()
    CUDABackend.add_stages = _stages(CUDABackend.add_stages, compare)
    JITFunction.run = _recorded(JITFunction.run, compare)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]


def _stages(add_stages: Callable[..., None], compare: bool) -> Callable[..., None]:
    """The compiler's stages without machine code, or without all that follows Triton's own IR."""

    def skipped(module: Any, metadata: dict[str, Any]) -> str:
        metadata |= {"shared": 0, "name": ""}
        return ""

    def add(self: Any, stages: dict[str, Any], *args: Any) -> None:
        add_stages(self, stages, *args)
        stages["cubin"] = lambda ptx, metadata: b""
        if not compare:
            stages |= dict.fromkeys(("ttgir", "llir", "ptx"), skipped)

    return add


def _recorded(run: Callable[..., Any], compare: bool) -> Callable[..., Any]:
    def recorded(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        try:
            kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
            if kernel.metadata.shared > driver.SHARED_MEMORY:
                raise OutOfResources(kernel.metadata.shared, driver.SHARED_MEMORY, "shared memory")
        except (OSError, MemoryError):
            raise  # trouble of ours
        except Exception as error:
            _recorder.refused = f"{self.__name__}: {type(error).__name__}: {' '.join(str(error).split())[-300:]}"
            raise
        code = hashlib.blake2b(kernel.asm["ptx"].encode(), digest_size=16).hexdigest() if compare else None
        size = [int(n) for n in (grid(named) if callable(grid) else grid)]
        values = {name: _recorder.value(value) for name, value in sorted(named.items())}
        _recorder.launches.append([self.__name__, size, code, values])
        return kernel

    return recorded


def trace(source: Path, entry: str, call: dict[str, Any]) -> tuple[Any, str | None]:
    """What a program does on a call, as JSON values, and why the compiler refuses it (None where it does not)."""
    global _recorder
    _recorder = Recorder()
    current.restart(config=0)
    tensors = [_tensor(spec) for spec in call["tensors"]]
    _recorder.launches.append([_recorder.value(tensor) for tensor in tensors])  # inputs have the first places
    args = [_argument(value, tensors) for value in call["positional"]]
    kwargs = {name: _argument(value, tensors) for name, value in call["keyword"].items()}
    try:
        with redirect.redirected():
            result = runpy.run_path(str(source), run_name="candidate")[entry](*args, **kwargs)
        results = result if isinstance(result, tuple | list) else (result,)
        ended = [type(result).__name__, *(_recorder.value(value) for value in results)]
    except (OSError, MemoryError):
        raise
    except Exception as error:
        ended = [RAISED, f"{type(error).__name__}: {error}"]
    return [_recorder.launches, ended], _recorder.refused


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


def main() -> None:
    order = json.load(sys.stdin)
    install(order["compare"])
    with tempfile.TemporaryDirectory() as folder:

        def path(name: str, source: str) -> Path:
            file = Path(folder, f"{name}.py")
            file.write_text(source)
            return file

        original = path("original", order["original"])
        right: dict[int, Any] = {}

        def same(file: Path, place: int) -> bool:
            if place not in right:
                right[place] = trace(original, order["entry"], order["calls"][place])[0]
                if right[place][1][0] == RAISED:
                    raise RuntimeError(f"the right kernel raises on call {place}: {right[place][1][1]}")
            return trace(file, order["entry"], order["calls"][place])[0] == right[place]

        found = {}
        for name, source in order["mutants"].items():
            file = path(name, source)
            refused = trace(file, order["entry"], order["calls"][0])[1]
            equal = None
            if order["compare"]:
                equal = refused is None and all(same(file, place) for place in range(len(order["calls"])))
            found[name] = {"refused": refused, "same": equal}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
