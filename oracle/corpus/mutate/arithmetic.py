"""Mutations of what is computed: operators, operands, functions, constants, axes, comparisons, choices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from oracle.corpus.mutate.program import Edit, Program, binary, call_with, constant, is_tl, number, tl_name

SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}
FUNCTIONS = {
    "max": ("min", "sum"),
    "min": ("max",),
    "sum": ("max",),
    "exp": ("exp2",),
    "exp2": ("exp",),
    "log": ("log2",),
    "sqrt": ("rsqrt",),
    "rsqrt": ("sqrt",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "argmax": ("argmin",),
}
DROPPABLE = ("sqrt", "rsqrt", "abs", "log", "exp", "sigmoid", "erf", "trans", "cumsum")


def operator_swapped(program: Program) -> Iterator[Edit]:
    """+ for -, * for /, // for %; index arithmetic takes part with // and % alone."""
    for node in program.kernel_nodes():
        if not isinstance(node, ast.BinOp) or type(node.op) not in SWAPPED or program.steers_loop(node):
            continue
        if not program.is_address(node) or isinstance(node.op, ast.FloorDiv | ast.Mod):
            yield Edit(node, binary(node.left, SWAPPED[type(node.op)], node.right))


def operand_dropped(program: Program) -> Iterator[Edit]:
    """a + b, a * b: one of the two alone; a - b, a / b: a alone. Dropped shifts, scales, factors and terms."""
    for node in _value_operations(program):
        if _is_eps(node):
            continue
        yield Edit(node, node.left)
        if isinstance(node.op, ast.Add | ast.Mult):
            yield Edit(node, node.right)


def eps_dropped(program: Program) -> Iterator[Edit]:
    for node in _value_operations(program):
        if _is_eps(node):
            yield Edit(node, node.left)


def eps_moved(program: Program) -> Iterator[Edit]:
    """eps outside the root instead of inside."""
    for node in program.values():
        if isinstance(node, ast.Call) and is_tl(node, "sqrt") and _is_eps(node.args[0]):
            inner: Any = node.args[0]
            yield Edit(node, binary(call_with(node, args=[inner.left]), ast.Add, inner.right))


def operands_swapped(program: Program) -> Iterator[Edit]:
    for node in _value_operations(program):
        if isinstance(node.op, ast.Sub | ast.Div):
            yield Edit(node, binary(node.right, type(node.op), node.left))


def function_swapped(program: Program) -> Iterator[Edit]:
    for node in program.values():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for name in FUNCTIONS.get(tl_name(node) or "", ()):
                called = ast.Attribute(node.func.value, name, ast.Load())
                yield Edit(node, ast.Call(called, node.args, node.keywords))


def function_dropped(program: Program) -> Iterator[Edit]:
    for node in program.values():
        if isinstance(node, ast.Call) and is_tl(node, *DROPPABLE):
            yield Edit(node, node.args[0])


def axis_changed(program: Program) -> Iterator[Edit]:
    for node in program.values():
        if isinstance(node, ast.keyword) and node.arg == "axis" and isinstance(axis := number(node.value), int):
            yield Edit(node.value, constant(1 - axis if axis in (0, 1) else axis - 1))


def constant_changed(program: Program) -> Iterator[Edit]:
    """0 becomes 1; another number is doubled, and cut to two digits where it has more."""
    for node in program.values():
        value = number(node)
        parent = program.parents[node]
        if value is None or not isinstance(parent, ast.BinOp | ast.Compare | ast.Call | ast.UnaryOp):
            continue
        if isinstance(parent, ast.Call) and not is_tl(parent, "where", "maximum", "minimum"):
            continue
        if value == 0:
            yield Edit(node, constant(type(value)(1)))
            continue
        yield Edit(node, constant(value * 2))
        if isinstance(value, float) and float(f"{value:.2g}") != value:
            yield Edit(node, constant(float(f"{value:.2g}")))


def choice_fixed(program: Program) -> Iterator[Edit]:
    """tl.where(c, a, b) as a, as b, and with a and b swapped."""
    for node in program.values():
        if isinstance(node, ast.Call) and is_tl(node, "where") and len(node.args) == 3:
            condition, a, b = node.args
            yield Edit(node, a)
            yield Edit(node, b)
            yield Edit(node, call_with(node, args=[condition, b, a]))


def comparison_changed(program: Program) -> Iterator[Edit]:
    """== for != and back, < for > and back; a test for NaN (x != x) that never fires."""
    other: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Lt: ast.Gt,
        ast.Gt: ast.Lt,
        ast.LtE: ast.GtE,
        ast.GtE: ast.LtE,
    }
    for node in program.values():
        if not isinstance(node, ast.Compare) or isinstance(program.parents[node], ast.While):
            continue
        operator = type(node.ops[0])
        if operator in other:
            yield Edit(node, ast.Compare(node.left, [other[operator]()], node.comparators))
        if operator is ast.NotEq and ast.unparse(node.left) == ast.unparse(node.comparators[0]):
            yield Edit(node, ast.Compare(node.left, [ast.Lt()], node.comparators), "NaN not seen")


def nan_lost(program: Program) -> Iterator[Edit]:
    """A maximum that no longer carries NaN on."""
    for node in program.values():
        if isinstance(node, ast.Call) and any(keyword.arg == "propagate_nan" for keyword in node.keywords):
            yield Edit(node, call_with(node, keywords=[k for k in node.keywords if k.arg != "propagate_nan"]))


def sign_dropped(program: Program) -> Iterator[Edit]:
    for node in program.values():
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and number(node.operand) is None:
            yield Edit(node, node.operand)


def _value_operations(program: Program) -> Iterator[ast.BinOp]:
    for node in program.values():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            yield node


def _is_eps(node: ast.AST) -> bool:
    """Whether a node is a sum with a name or constant that stands for a small epsilon."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    value = number(node.right)
    return ast.unparse(node.right) == "eps" or (value is not None and 0 < value < 1e-3)


OPERATORS = (
    operator_swapped,
    operand_dropped,
    eps_dropped,
    eps_moved,
    operands_swapped,
    function_swapped,
    function_dropped,
    axis_changed,
    constant_changed,
    choice_fixed,
    comparison_changed,
    nan_lost,
    sign_dropped,
)
