"""Mutations of the function that launches: layouts, sizes, keywords, dtypes, arguments."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from oracle.corpus.mutate.program import (
    Edit,
    Function,
    Program,
    call_with,
    constant,
    expression,
    method,
    names,
    number,
    targets,
)

SIZES = (64, 1024)  # usual sizes of fixed benchmark shapes


def contiguous_dropped(program: Program) -> Iterator[Edit]:
    for node in program.host_nodes():
        value = method(node, "contiguous")
        if value is not None:
            yield Edit(node, value)


def stride_assumed(program: Program) -> Iterator[Edit]:
    """Strides as if the tensor were contiguous, or of the wrong dim."""
    for node in program.host_nodes():
        value = method(node, "stride")
        if value is None or not isinstance(node, ast.Call):
            continue
        yield Edit(node, _contiguous_stride(node, value))
        if node.args and isinstance(dim := number(node.args[0]), int) and dim in (0, 1):
            yield Edit(node, call_with(node, args=[constant(1 - dim)]))


def view_for_reshape(program: Program) -> Iterator[Edit]:
    for node in program.host_nodes():
        value = method(node, "reshape")
        if value is not None and isinstance(node, ast.Call):
            yield Edit(node, ast.Call(ast.Attribute(value, "view", ast.Load()), node.args, node.keywords))


def output_like_input(program: Program) -> Iterator[Edit]:
    """empty_like keeps the strides of a dense input; kernels that write row by row then scatter their result."""
    for node in program.host_nodes():
        if not _allocates(node) or not isinstance(node, ast.Call) or not node.args:
            continue
        tensor = node.args[0].value if isinstance(node.args[0], ast.Attribute) else None
        if isinstance(tensor, ast.Name) and not _reassigned_before(program, tensor.id, node):
            yield Edit(node, expression("torch.empty_like(X)", X=tensor))


def dtype_changed(program: Program) -> Iterator[Edit]:
    """Results in float32 or int32 whatever the input; float32 buffers in the input's dtype; promotion ignored."""
    first = _first_parameter(program)
    for node in program.host_nodes():
        if isinstance(node, ast.Call) and _allocates(node):
            for keyword in node.keywords:
                if keyword.arg == "dtype":
                    yield Edit(keyword.value, _other_dtype(ast.unparse(keyword.value), first))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.promote_types", "torch.result_type"):
            for argument in node.args:
                of_dtypes = ast.unparse(node.func).endswith("types")
                yield Edit(node, argument if of_dtypes else expression("X.dtype", X=argument))


def keyword_ignored(program: Program) -> Iterator[Edit]:
    """A keyword argument replaced by its default."""
    for entry, name, default in _defaults(program):
        reset = ast.Assign([ast.Name(name, ast.Store())], default, lineno=entry.lineno)
        yield Edit(entry, _with_first(entry, reset), f"{name} is always {ast.unparse(default)}")


def default_changed(program: Program) -> Iterator[Edit]:
    for _, _, default in _defaults(program):
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            yield Edit(default, constant(not default.value))
        elif (value := _signed(default)) is not None:
            yield Edit(default, constant(value * 10 if isinstance(value, float) else value + 1))


def argument_scaled(program: Program) -> Iterator[Edit]:
    """A constant that the launch hands to a kernel (an epsilon, a slope) ten times too large."""
    for launch in program.launches():
        for argument in launch.args:
            value = number(argument)
            if isinstance(value, float):
                yield Edit(argument, constant(value * 10))


def size_fixed(program: Program) -> Iterator[Edit]:
    """A size that a kernel takes as a parameter fixed to that of a benchmark, for all its uses or one division."""
    for kernel in program.kernels:
        for argument in kernel.args.args:
            name = argument.arg
            if argument.annotation is not None or name.endswith("ptr") or not _bounds(kernel, name):
                continue
            for size in SIZES:
                fixed = ast.Assign([ast.Name(name, ast.Store())], constant(size), lineno=kernel.lineno)
                yield Edit(kernel, _with_first(kernel, fixed), f"{name} is always {size}")
        parameters = {argument.arg for argument in kernel.args.args}
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ast.unparse(node.right) in parameters:
                for size in SIZES:
                    yield Edit(node.right, constant(size))


def arguments_swapped(program: Program) -> Iterator[Edit]:
    """Two neighbouring sizes of a launch in each other's place."""
    parameters = {kernel.name: [argument.arg for argument in kernel.args.args] for kernel in program.kernels}
    for launch in program.launches():
        kernel = ast.unparse(launch.func.value)  # type: ignore[attr-defined]
        pairs = zip(launch.args, launch.args[1:], strict=False)
        for index, (left, right) in enumerate(pairs):
            pointer = any(name.endswith("ptr") for name in parameters.get(kernel, ["ptr"])[index : index + 2])
            if not pointer and isinstance(left, ast.Name) and isinstance(right, ast.Name):
                swapped = [*launch.args[:index], right, left, *launch.args[index + 2 :]]
                yield Edit(launch, call_with(launch, args=swapped), f"{left.id} and {right.id} swapped in the launch")


def _contiguous_stride(node: ast.Call, value: ast.expr) -> ast.expr:
    return ast.Call(expression("X.contiguous().stride", X=value), node.args, node.keywords)


def _allocates(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.empty", "torch.zeros", "torch.full")


def _first_parameter(program: Program) -> str:
    return program.entry.args.args[0].arg if program.entry and program.entry.args.args else "x"


def _other_dtype(text: str, first: str) -> ast.expr:
    if text == "torch.float32":
        return expression(f"{first}.dtype")
    return expression("torch.int32" if text == "torch.int64" else "torch.float32")


def _reassigned_before(program: Program, name: str, node: ast.AST) -> bool:
    owner = program.function(node)
    assert owner is not None
    return any(
        isinstance(other, ast.Assign) and name in targets(other) and other.lineno < node.lineno  # type: ignore[attr-defined]
        for other in ast.walk(owner)
    )


def _defaults(program: Program) -> Iterator[tuple[Function, str, ast.expr]]:
    """Parameters of the entry function that have a default (None stands for "computed": ignoring it counts too)."""
    if program.entry is not None and program.entry.args.defaults:
        arguments = program.entry.args.args[-len(program.entry.args.defaults) :]
        for argument, default in zip(arguments, program.entry.args.defaults, strict=True):
            yield program.entry, argument.arg, default


def _signed(node: ast.expr) -> float | int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    return number(node)


def _with_first(function: Function, statement: ast.stmt) -> Function:
    """A copy of a function whose body opens with one more statement."""
    longer = copy.copy(function)
    longer.body = [statement, *function.body]
    return longer


def _bounds(kernel: Function, name: str) -> bool:
    """Whether a parameter bounds an index or a loop."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and name in names(node.comparators[0]):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and name in names(node):
            return True
    return False


OPERATORS = (
    contiguous_dropped,
    stride_assumed,
    view_for_reshape,
    output_like_input,
    dtype_changed,
    keyword_ignored,
    default_changed,
    argument_scaled,
    size_fixed,
    arguments_swapped,
)
