"""Mutations of what a kernel reads and writes: masks, fill values, bounds, strides, offsets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oracle.corpus.mutate.program import (
    MEMORY,
    Edit,
    Function,
    Program,
    binary,
    constant,
    is_tl,
    names,
    number,
    without_keywords,
)


def mask_dropped(program: Program) -> Iterator[Edit]:
    for node in program.kernel_nodes():
        if isinstance(node, ast.Call) and is_tl(node, *MEMORY) and any(k.arg == "mask" for k in node.keywords):
            yield Edit(node, without_keywords(node, "mask", "other"))


def mask_part_dropped(program: Program) -> Iterator[Edit]:
    for node in _conjunctions(program):
        yield Edit(node, node.left)
        yield Edit(node, node.right)


def mask_joined_by_or(program: Program) -> Iterator[Edit]:
    for node in _conjunctions(program):
        yield Edit(node, binary(node.left, ast.BitOr, node.right))


def other_changed(program: Program) -> Iterator[Edit]:
    """The fill value of a masked load: the neutral value of another reduction, or a finite stand-in for -inf.

    Tiles of a product keep 0.0 or get -inf: 1.0 in one factor meets the other's 0.0 and changes nothing.
    """
    for node, other in _filled_loads(program):
        fill, kernel = number(other), program.function(node)
        multiplies = any(is_tl(call, "dot") for call in ast.walk(kernel)) if kernel else False
        if "inf" in ast.unparse(other):
            yield Edit(other, constant(0.0))
            yield Edit(other, constant(-10000.0))
        elif isinstance(fill, float):
            yield Edit(other, constant(float("-inf")))
        if fill == 0 and not multiplies:
            yield Edit(other, constant(type(fill)(1)))


def other_dropped(program: Program) -> Iterator[Edit]:
    """No fill value: the lanes are undefined, often 0 in fact. What that changes belongs to the tier `portability`."""
    for node, _ in _filled_loads(program):
        yield Edit(node, without_keywords(node, "other"))


def bound_moved(program: Program) -> Iterator[Edit]:
    """An order comparison made strict or not, and an upper bound lowered by one."""
    other: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
    }
    for node in program.kernel_nodes():
        if isinstance(node, ast.Compare) and type(node.ops[0]) in other:
            if isinstance(number(node.comparators[0]), float):
                continue  # a threshold of a function that is continuous there
            yield Edit(node, ast.Compare(node.left, [other[type(node.ops[0])]()], node.comparators))
            if isinstance(node.ops[0], ast.Lt) and isinstance(node.comparators[0], ast.Name):
                lower = binary(node.comparators[0], ast.Sub, constant(1))
                yield Edit(node, ast.Compare(node.left, node.ops, [lower]))


def stride_dropped(program: Program) -> Iterator[Edit]:
    for node, _, name, rest in _strided(program):
        yield Edit(node, rest, f"{name} taken as 1")


def stride_swapped(program: Program) -> Iterator[Edit]:
    """A factor of an address replaced by another size or stride of the kernel: right for square inputs only, say."""
    for node, kernel, name, rest in _strided(program):
        factors = _factors(program, kernel)
        other = factors[(factors.index(name) + 1) % len(factors)]
        if other != name:
            yield Edit(node, binary(rest, ast.Mult, ast.Name(other, ast.Load())))


def offset_dropped(program: Program) -> Iterator[Edit]:
    """One term of an address left out."""
    for node in program.kernel_nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and program.is_address(node):
            yield Edit(node, node.left)
        if isinstance(node, ast.AugAssign) and re.search("ptr", ast.unparse(node.target)):
            yield Edit(node, None)


def _filled_loads(program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    for node in program.kernel_nodes():
        if isinstance(node, ast.Call) and is_tl(node, "load"):
            yield from ((node, keyword.value) for keyword in node.keywords if keyword.arg == "other")


def _conjunctions(program: Program) -> Iterator[ast.BinOp]:
    for node in program.kernel_nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            yield node


def _parameters(kernel: Function) -> list[str]:
    """Run-time parameters of a kernel that are not pointers."""
    return [a.arg for a in kernel.args.args if a.annotation is None and not a.arg.endswith("ptr")]


def _strided(program: Program) -> Iterator[tuple[ast.BinOp, Function, str, ast.expr]]:
    """Products in addresses with a parameter as a factor: node, kernel, the parameter, the other factor."""
    for kernel in program.kernels:
        parameters = _parameters(kernel)
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _in_address(program, node):
                for factor, rest in ((node.right, node.left), (node.left, node.right)):
                    if isinstance(factor, ast.Name) and factor.id in parameters:
                        yield node, kernel, factor.id, rest
                        break


def _in_address(program: Program, node: ast.AST) -> bool:
    statement = program.within(node, ast.AugAssign)
    return program.is_address(node) or (
        isinstance(statement, ast.AugAssign) and ast.unparse(statement.target).endswith(("ptr", "ptrs"))
    )


def _factors(program: Program, kernel: Function) -> list[str]:
    """Parameters that are a factor of some address of the kernel or bound some index, in the order of the signature."""
    used = {name for _, owner, name, _ in _strided(program) if owner is kernel}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare):
            used |= names(node.comparators[0])
    return [name for name in _parameters(kernel) if name in used]


OPERATORS = (
    mask_dropped,
    mask_part_dropped,
    mask_joined_by_or,
    other_changed,
    other_dropped,
    bound_moved,
    stride_dropped,
    stride_swapped,
    offset_dropped,
)
