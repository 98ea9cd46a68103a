"""Launching kernels: what happens between `kernel[grid](...)` and its programs, without the stock interpreter's detours.

The stock interpreter copies every storage at every launch and patches the whole of `triton.language` at every launch and
every call of a device function. Here the language is patched once; kernels read and write the tensors where they lie.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as stock
from triton.backends.nvidia.compiler import CUDAOptions, min_dot_size
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from oracle.interpreter import redirect
from oracle.interpreter.absent import absent_api
from oracle.interpreter.bfloat16 import TensorHandle
from oracle.interpreter.driver import TARGET
from oracle.interpreter.errors import KernelError, OutOfBounds, Unsupported
from oracle.interpreter.memory import memory
from oracle.interpreter.rewriting import rewritten
from oracle.interpreter.state import current

_OPTIONS = frozenset(CUDAOptions.__dataclass_fields__)


class Kernel:
    """One `@triton.jit` function, made ready to be interpreted (rewritten at its first call, as Triton compiles)."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        self.constexprs = frozenset(stock.GridExecutor(function, list(self.signature.parameters), None).constexprs)
        self._body: Any = None

    @property
    def body(self) -> Any:
        if self._body is None:
            self._body = rewritten(self.function)
        return self._body

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults filled in, launch options left out.

        Raises TypeError for arguments that do not fit, KeyError for an option that Triton does not know.
        """
        own = {name: value for name, value in kwargs.items() if name in self.signature.parameters}
        for name in kwargs:
            if name not in own and name not in _OPTIONS:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        bound = self.signature.bind(*args, **own)
        bound.apply_defaults()
        return dict(bound.arguments)

    def values(self, bound: dict[str, Any]) -> dict[str, Any]:
        """Arguments as kernels see them: addresses, scalars as tensors, constexprs as they are."""
        return {name: value if name in self.constexprs else as_value(value) for name, value in bound.items()}


def as_value(argument: Any) -> Any:
    """A kernel argument in the interpreter. Tensors become pointers, floats float32 (as a launch passes them)."""
    if type(argument) is float:
        return _scalar(np.array([argument], np.float32), tl.float32)
    if type(argument) is bool:
        return _scalar(np.array([argument]), tl.int1)
    return stock._implicit_cvt(argument)


def _scalar(values: np.ndarray, dtype: Any) -> Any:
    return tl.tensor(TensorHandle(values, dtype), dtype)


class Compiled:
    """Stands for the compiled kernel that a warm-up or a launch returns. Its resource figures are made up but
    plausible: host code divides by them to size its grid."""

    n_regs, n_spills, n_max_threads, function = 32, 0, 1024, 0

    def __init__(self, kernel: Any, kwargs: dict[str, Any]) -> None:
        self._kernel, self._kwargs = kernel, kwargs
        self.name, self.asm = kernel.__name__, dict[str, str]()
        options = {name: kwargs.get(name, default) for name, default in _DEFAULT_OPTIONS.items()}
        self.metadata = types.SimpleNamespace(shared=1024, name=self.name, target=TARGET, **options)

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> Any:
            parameters = list(self._kernel.arg_names)
            given = {*parameters[: len(args)], *kwargs}
            kept = {k: v for k, v in self._kwargs.items() if k in parameters and k not in given}
            return self._kernel.run(*args, grid=grid, warmup=False, **kept, **kwargs)

        return launch


_DEFAULT_OPTIONS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}


def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """Replaces `InterpretedFunction.run`: one launch (or, for a warm-up, none)."""
    if warmup:
        return Compiled(self, kwargs)
    for hook in self.pre_run_hooks:
        hook(*args, **kwargs)
    kernel = prepared(self)
    bound = kernel.bind(args, kwargs)
    programs = _programs(grid(bound) if callable(grid) else grid)
    if programs[0] * programs[1] * programs[2]:
        current.launches += 1
        with torch._C.DisableTorchFunction(), np.errstate(all="ignore"):
            current.hold()
            memory.launch(_tensors(bound))
            _interpret(kernel, bound, programs)
    return Compiled(self, kwargs)


def _programs(grid: Any) -> tuple[int, int, int]:
    """Three sizes, as a launch needs them: 1 to 3 integers, none negative."""
    if not hasattr(grid, "__len__"):
        raise TypeError(f"a grid is a tuple of 1 to 3 integers, got {type(grid).__name__}")
    sizes = [*grid]
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise TypeError(f"a grid holds integers, got {type(size).__name__}")
    if not 1 <= len(sizes) <= 3 or any(size < 0 for size in sizes):
        raise ValueError(f"a grid has 1 to 3 sizes of at least 0, got {tuple(sizes)}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def _tensors(bound: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Every tensor among the arguments, by argument name. Raises ValueError for one that a GPU could not reach."""
    found: dict[str, torch.Tensor] = {}
    for position, (name, argument) in enumerate(bound.items()):
        for index, tensor in enumerate(_inside(argument)):
            if redirect.is_host(tensor):
                raise ValueError(f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?)")
            found[name if index == 0 else f"{name}[{index}]"] = tensor
    return found


def _inside(argument: Any) -> Iterator[torch.Tensor]:
    if isinstance(argument, torch.Tensor):
        yield argument
    elif isinstance(argument, (TensorWrapper, TensorDescriptor)):
        yield from _inside(argument.base)
    elif isinstance(argument, (tuple, list)):
        for item in argument:
            yield from _inside(item)


def _interpret(kernel: Kernel, bound: dict[str, Any], programs: tuple[int, int, int]) -> None:
    builder = stock.interpreter_builder
    builder.set_grid_dim(*programs)
    order = [range(size)[::-1] if current.reverse else range(size) for size in programs]
    current.depth += 1
    try:
        values = kernel.values(bound)
        for z in order[2]:
            for y in order[1]:
                for x in order[0]:
                    builder.grid_idx = (x, y, z)
                    kernel.body(**values)
    except OutOfBounds as error:
        message = f"{error} ({_place(kernel, error)})"
        current.find("out_of_bounds", message)
        raise OutOfBounds(message) from None
    except Unsupported as error:
        current.unsupported = f"{error} ({_place(kernel, error)})"
        current.find("note", f"unsupported: {current.unsupported}")
        raise Unsupported(current.unsupported) from None
    except (MemoryError, KernelError):
        raise
    except Exception as error:
        text = str(error) or repr(error)
        if absent := absent_api(text):
            current.unsupported = absent
        raise KernelError(f"{type(error).__name__}: {text} ({_place(kernel, error)})") from error
    finally:
        current.depth -= 1


def _place(kernel: Kernel, error: BaseException) -> str:
    """Kernel and innermost line of the kernel's own file at which an exception arose."""
    code = kernel.function.__code__
    line = None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == code.co_filename:
            line = step.tb_lineno
        step = step.tb_next
    return f"kernel `{kernel.function.__name__}`" + (f", line {line}" if line else "")


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Replaces `InterpretedFunction.__call__`: a device function, called from a kernel."""
    if not current.depth:
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    return prepared(self).body(*args, **kwargs)


def prepared(function: Any) -> Kernel:
    """The function's `Kernel`, kept on it."""
    if "_prepared" not in vars(function):
        function._prepared = Kernel(function.fn)
    return function._prepared


def _initialise(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, fn: Any, **kwargs: Any) -> None:
        try:
            inspect.getsourcelines(fn)
        except OSError as error:  # what Triton says of a function without a file when it compiles
            raise ValueError("@jit functions should be defined in a Python file") from error
        original(self, fn, **kwargs)

    return __init__


def autotuned(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Replaces `Autotuner.run`: no timing, one configuration: the `config`-th of those left after pruning."""
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    configs = self.prune_configs(kwargs) if len(self.configs) > 1 else self.configs
    current.configs = max(current.configs, len(configs))
    config = self.best_config = configs[current.config % len(configs)]
    again = sorted(kwargs.keys() & config.kwargs.keys())
    if again:
        names = ", ".join(again)
        raise ValueError(
            f"Conflicting meta-parameters: {names}. Make sure that you don't re-define auto-tuned symbols."
        )
    full = {**self.nargs, **kwargs, **config.all_kwargs()}
    if len(self.configs) > 1:
        self.pre_hook(full, reset_only=True)
    if config.pre_hook is not None:
        config.pre_hook(full)
    result = self.fn.run(*args, **kwargs, **config.all_kwargs())
    self.nargs = None
    return result


def _patch_attr(holder: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
    """One builtin of `triton.language`, given the interpreter's semantics. Outside a kernel it is refused, as always."""

    def builtin(*args: Any, **kwargs: Any) -> Any:
        if not current.depth:
            raise ValueError(
                "Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT functions.)"
            )
        kwargs["_semantic"] = stock.interpreter_semantic
        return member(*args, **kwargs)

    builtin.__name__, builtin.__doc__ = name, member.__doc__
    scope.set_attr(holder, name, builtin)


def patch_builtins(module: Any) -> None:
    stock._patch_builtin(module, stock.interpreter_builder, stock._LangPatchScope())


def create_inline_asm(self: Any, *args: Any) -> Any:
    raise Unsupported("inline assembly cannot run in the interpreter")


def install() -> None:
    """Patch the language once and for all, and take over launches, device functions and autotuning."""
    stock._patch_attr = _patch_attr
    visible = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
    stock._patch_lang(visible)
    tl.tensor.__index__ = lambda self: int(self.handle.data.item())
    stock._patch_lang = lambda fn: stock._LangPatchScope()
    stock.InterpreterBuilder.create_inline_asm = create_inline_asm
    # the check costs three operations an addition, and asserts only in debug builds
    stock.interpreter_builder.options = stock.InterpreterOptions(sanitize_overflow=False)
    stock.interpreter_builder.codegen_fns["min_dot_size"] = min_dot_size(TARGET)
    function = stock.InterpretedFunction
    function.__init__, function.run, function.__call__ = _initialise(function.__init__), run, call
    Autotuner.run = autotuned
