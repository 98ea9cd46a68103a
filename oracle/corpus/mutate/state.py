"""Mutations of what is carried along: accumulators, updates, branches, dtypes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from oracle.corpus.mutate.program import (
    Edit,
    Function,
    Program,
    call_with,
    constant,
    expression,
    is_tl,
    method,
    names,
    targets,
)
from oracle.syntax import parse_expression

HALVES = ("tl.float16", "tl.bfloat16")


def accumulator_assigned(program: Program) -> Iterator[Edit]:
    """acc = value where acc += value is meant; a dot without its accumulator."""
    for node in program.values():
        if isinstance(node, ast.AugAssign):
            yield Edit(node, ast.Assign([node.target], node.value, lineno=node.lineno))
        if isinstance(node, ast.Call) and is_tl(node, "dot") and len(node.args) == 3:
            yield Edit(node, call_with(node, args=node.args[:2]))


def update_dropped(program: Program) -> Iterator[Edit]:
    """A statement that changes a name already bound, left out: a forgotten rescale, shift or carry."""
    for kernel in program.kernels:
        bound = {argument.arg for argument in kernel.args.args}
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign | ast.AugAssign):
                again = targets(node) <= bound or bool(targets(node) & names(node.value))
                bound |= targets(node)
                if again and not program.steers_loop(node) and not program.is_address(node):
                    yield Edit(node, None)


def accumulator_rounded(program: Program) -> Iterator[Edit]:
    """Float32 sums rounded to a half at each step."""
    for kernel in program.kernels:
        sums = _float_sums(kernel)
        for node in ast.walk(kernel):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and targets(node) <= sums:
                for half in HALVES:
                    rounded = expression(f"(A + V).to({half}).to(tl.float32)", A=_loaded(node.target), V=node.value)
                    yield Edit(node, ast.Assign([node.target], rounded, lineno=node.lineno))
            if isinstance(node, ast.Call) and is_tl(node, "dot") and len(node.args) == 3:
                for half in HALVES:
                    yield Edit(node, expression(f"D.to({half}).to(tl.float32)", D=node))


def reduction_rounded(program: Program) -> Iterator[Edit]:
    """A float32 reduction or scan taken in float16."""
    for node in program.values():
        counts = "int32" in ast.unparse(node) or "mask" in names(node)  # small integers are exact in float16
        if isinstance(node, ast.Call) and is_tl(node, "sum", "cumsum") and not counts:
            narrow = expression("V.to(tl.float16)", V=node.args[0])
            yield Edit(node, expression("R.to(tl.float32)", R=call_with(node, args=[narrow, *node.args[1:]])))


def cast_dropped(program: Program) -> Iterator[Edit]:
    for node, value, kind in _casts(program):
        if kind == "tl.float32" or kind in HALVES or kind.endswith(".dtype"):
            yield Edit(node, value)


def cast_narrowed(program: Program) -> Iterator[Edit]:
    """A value rounded to a half on its way to float32."""
    for node, value, kind in _casts(program):
        if kind == "tl.float32" and not any(isinstance(child, ast.Compare) for child in ast.walk(value)):
            yield Edit(node, expression("V.to(tl.bfloat16).to(tl.float32)", V=value))
            yield Edit(node, expression("V.to(tl.float16).to(tl.float32)", V=value))


def branch_fixed(program: Program) -> Iterator[Edit]:
    """A branch always or never taken; guards against emptiness are left alone, for an empty grid needs none."""
    for node in [*program.kernel_nodes(), *program.host_nodes()]:
        if isinstance(node, ast.If) and not _guards_emptiness(node.test):
            yield Edit(node.test, constant(True))
            yield Edit(node.test, constant(False))
        if isinstance(node, ast.IfExp):
            yield Edit(node, node.body)
            yield Edit(node, node.orelse)


def _casts(program: Program) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    for node in program.kernel_nodes():
        value = method(node, "to")
        if isinstance(node, ast.Call) and value is not None and len(node.args) == 1 and not node.keywords:
            yield node, value, ast.unparse(node.args[0])


def _float_sums(kernel: Function) -> set[str]:
    """Names that start as a float32 tensor of constants."""
    return {
        name
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and "tl.float32" in ast.unparse(node.value)
        if is_tl(node.value, "zeros", "full")
        for name in targets(node)
    }


def _loaded(target: ast.expr) -> ast.expr:
    return parse_expression(ast.unparse(target))


def _guards_emptiness(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return "numel" in text or (text.endswith(("== 0", "> 0", "!= 0")) and "%" not in text)


OPERATORS = (
    accumulator_assigned,
    update_dropped,
    accumulator_rounded,
    reduction_rounded,
    cast_dropped,
    cast_narrowed,
    branch_fixed,
)
