"""Mutations of how the work is divided: grids, blocks, program ids, loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from oracle.corpus.mutate.program import (
    Edit,
    Program,
    binary,
    call_with,
    constant,
    expression,
    is_tl,
    number,
)


def grid_short(program: Program) -> Iterator[Edit]:
    """Too few programs: the last partial block dropped, one program less, one program in all."""
    for grid in program.grids():
        for element in grid.elts:
            for node in ast.walk(element):
                if _is_cdiv(node):
                    yield Edit(node, binary(node.args[0], ast.FloorDiv, node.args[1]))
            if number(element) is None:
                yield Edit(element, constant(1))
                yield Edit(element, expression("max(1, E - 1)", E=element))


def grid_swapped(program: Program) -> Iterator[Edit]:
    for grid in program.grids():
        if len(grid.elts) > 1:
            yield Edit(grid, ast.Tuple([grid.elts[1], grid.elts[0], *grid.elts[2:]], ast.Load()))


def block_mismatched(program: Program) -> Iterator[Edit]:
    """A block that the grid counts twice as large as the kernel takes it, or the kernel half as large as the grid."""
    counted = {number(node.args[1]) for node in program.host_nodes() if _is_cdiv(node)}
    for node in program.host_nodes():
        if _is_cdiv(node) and isinstance(size := number(node.args[1]), int):
            yield Edit(node, call_with(node, args=[node.args[0], constant(2 * size)]))
    for launch in program.launches():
        for keyword in launch.keywords:
            size = number(keyword.value)
            if isinstance(size, int) and size in counted and keyword.arg and keyword.arg.isupper():
                yield Edit(keyword.value, constant(size // 2))


def block_fixed(program: Program) -> Iterator[Edit]:
    """A block of a constant size where it should grow with the row."""
    for node in program.host_nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("next_power_of_2"):
            parent = program.parents[node]
            if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "min":
                continue  # a chunk of a loop: any size is right
            for size in (64, 1024):
                yield Edit(node, constant(size))


def program_id_changed(program: Program) -> Iterator[Edit]:
    """The wrong axis, or always the first program."""
    axes = {ast.unparse(node.args[0]) for node in program.kernel_nodes() if is_tl(node, "program_id")}  # type: ignore[attr-defined]
    for node in program.kernel_nodes():
        if isinstance(node, ast.Call) and is_tl(node, "program_id", "num_programs"):
            for axis in sorted(axes - {ast.unparse(node.args[0])}):
                yield Edit(node, call_with(node, args=[constant(int(axis))]))
            if is_tl(node, "program_id"):
                yield Edit(node, binary(node, ast.Mult, constant(0)))


def loop_shortened(program: Program) -> Iterator[Edit]:
    """The last partial block left out, the first block left out, one block alone, one element less."""
    for node in program.kernel_nodes():
        if _is_cdiv(node):
            yield Edit(node, binary(node.args[0], ast.FloorDiv, node.args[1]))
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "tl.range") and len(node.args) >= 2):
            continue
        start, stop, *step = node.args
        if step:
            yield Edit(node, call_with(node, args=[start, expression("E // S * S", E=stop, S=step[0]), *step]))
            yield Edit(node, call_with(node, args=[start, expression("A + S", A=start, S=step[0]), *step]))
        first = step[0] if step else constant(1)
        yield Edit(node, call_with(node, args=[binary(start, ast.Add, first), stop, *step]))
        yield Edit(node, call_with(node, args=[start, binary(stop, ast.Sub, constant(1)), *step]))


def _is_cdiv(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("cdiv")


OPERATORS = (
    grid_short,
    grid_swapped,
    block_mismatched,
    block_fixed,
    program_id_changed,
    loop_shortened,
)
