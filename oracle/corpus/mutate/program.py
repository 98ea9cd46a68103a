"""A Triton source as the mutation operators see it: its kernels, its host functions, and what its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from oracle.errors import UsageError
from oracle.syntax import parse, parse_expression

Function = ast.FunctionDef
MEMORY = ("load", "store", "atomic_add", "atomic_max", "atomic_min")


@dataclass(frozen=True)
class Edit:
    """Put `replacement` in the place of `node` (None: delete the statement). `note` says it where the two do not."""

    node: ast.AST
    replacement: ast.AST | None
    note: str = ""


class Program:
    """One parsed source.

    kernels   functions decorated with triton.jit.
    hosts     the other functions at module level; `entry` is the last of them.
    """

    def __init__(self, source: str) -> None:
        self.tree = parsed(source)
        functions = [node for node in self.tree.body if isinstance(node, Function)]
        self.kernels = [function for function in functions if _is_jit(function)]
        self.hosts = [function for function in functions if not _is_jit(function)]
        self.entry = self.hosts[-1] if self.hosts else None
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._address = {kernel: _address_nodes(kernel) for kernel in self.kernels}

    def kernel_nodes(self) -> Iterator[ast.AST]:
        """Every node in the bodies of kernels, in order."""
        for kernel in self.kernels:
            for statement in kernel.body:
                yield from ast.walk(statement)

    def host_nodes(self) -> Iterator[ast.AST]:
        for host in self.hosts:
            for statement in host.body:
                yield from ast.walk(statement)

    def is_address(self, node: ast.AST) -> bool:
        """Whether an expression in a kernel takes part in computing an address, an index or a mask of one."""
        return any(node in nodes for nodes in self._address.values())

    def values(self) -> Iterator[ast.AST]:
        """Nodes in kernels that compute values rather than addresses, and do not steer a while loop."""
        for node in self.kernel_nodes():
            if not self.is_address(node) and not self.steers_loop(node):
                yield node

    def within(self, node: ast.AST, kind: type | tuple[type, ...]) -> ast.AST | None:
        """The nearest ancestor of a kind, or None."""
        up = self.parents.get(node)
        while up is not None and not isinstance(up, kind):
            up = self.parents.get(up)
        return up

    def function(self, node: ast.AST) -> Function | None:
        found = node if isinstance(node, Function) else self.within(node, Function)
        return found if isinstance(found, Function) else None

    def steers_loop(self, node: ast.AST) -> bool:
        """Whether a change here could make a while loop endless: it assigns a name that the loop's test reads."""
        statement = (
            node if isinstance(node, ast.Assign | ast.AugAssign) else self.within(node, (ast.Assign, ast.AugAssign))
        )
        loop = self.within(node, ast.While)
        if not isinstance(statement, ast.Assign | ast.AugAssign) or not isinstance(loop, ast.While):
            return False
        return bool(targets(statement) & names(loop.test))

    def launches(self) -> Iterator[ast.Call]:
        """Host calls of the form kernel[grid](...)."""
        for node in self.host_nodes():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                yield node

    def grids(self) -> Iterator[ast.Tuple]:
        """The tuples that grids are given as, in the launch itself or assigned to a name used there."""
        grid_names = set()
        for launch in self.launches():
            grid = launch.func.slice  # type: ignore[attr-defined]
            if isinstance(grid, ast.Tuple):
                yield grid
            elif isinstance(grid, ast.Name):
                grid_names.add(grid.id)
        for node in self.host_nodes():
            if isinstance(node, ast.Assign) and targets(node) & grid_names and isinstance(node.value, ast.Tuple):
                yield node.value


def parsed(source: str) -> ast.Module:
    """The tree of a source without the docstring of its module, which is no part of the program."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"not a source that can be mutated: {error}") from None
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    return tree


def _is_jit(function: Function) -> bool:
    return any("jit" in ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list)


def _address_nodes(kernel: Function) -> set[ast.AST]:
    """Nodes of pointer arguments and masks of memory calls, and of the assignments of the names that these use."""
    roots: list[ast.AST] = []
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and is_tl(node, *MEMORY) and node.args:
            roots.append(node.args[0])
            roots += [keyword.value for keyword in node.keywords if keyword.arg == "mask"]
    parameters = {argument.arg for argument in kernel.args.args}
    known = {name for root in roots for name in names(root)}
    assigned = [node for node in ast.walk(kernel) if isinstance(node, ast.Assign | ast.AugAssign)]
    grown = True
    while grown:
        grown = False
        for statement in assigned:
            if targets(statement) & known and statement.value not in roots and not _computes(statement.value):
                roots.append(statement.value)
                known |= names(statement.value) - parameters
                grown = True
    return {node for root in roots for node in _outside_loads(root)} | {
        statement for statement in assigned if statement.value in roots
    }


def _computes(value: ast.AST) -> bool:
    """Whether an expression holds a load, a reduction or a dot: then its name is a value, used as an index or not."""
    return any(
        isinstance(node, ast.Call) and is_tl(node, "load", "sum", "max", "min", "dot") for node in ast.walk(value)
    )


def _outside_loads(root: ast.AST) -> Iterator[ast.AST]:
    yield root
    for child in ast.iter_child_nodes(root):
        yield from _outside_loads(child)


def is_tl(call: ast.AST, *functions: str) -> bool:
    """Whether a node is a call of one of Triton's language functions (`tl.NAME`, `tl.math.NAME`)."""
    return isinstance(call, ast.Call) and tl_name(call) in functions


def tl_name(call: ast.Call) -> str | None:
    """NAME of a call of `tl.NAME(...)` or `tl.math.NAME(...)`, else None."""
    if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in ("tl", "tl.math", "triton.language"):
        return call.func.attr
    return None


def method(node: ast.AST, name: str) -> ast.expr | None:
    """The object whose method `name` is called here, or None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
        return node.func.value
    return None


def names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def targets(statement: ast.Assign | ast.AugAssign) -> set[str]:
    """Names that an assignment binds."""
    found = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {name for target in found for name in names(target)}


def number(node: ast.AST) -> float | int | None:
    """The value of a numeric constant (a bool is not one), else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def constant(value: object) -> ast.expr:
    """An expression for a number, bool, string or None; "-inf" by float("-inf")."""
    if value == float("-inf"):
        return parse_expression('float("-inf")')
    return parse_expression(repr(value))


def expression(template: str, **parts: ast.AST) -> ast.expr:
    """The expression of a template whose names in capitals are replaced by nodes: expression("A + B", A=left, B=right)."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return parts.get(node.id, node)

    filled: ast.expr = Fill().visit(parse_expression(template))
    return filled


def binary(left: ast.expr, operator: type[ast.operator], right: ast.expr) -> ast.BinOp:
    return ast.BinOp(left, operator(), right)


def call_with(
    call: ast.Call, *, args: list[ast.expr] | None = None, keywords: list[ast.keyword] | None = None
) -> ast.Call:
    """A copy of a call with other arguments."""
    return ast.Call(call.func, call.args if args is None else args, call.keywords if keywords is None else keywords)


def without_keywords(call: ast.Call, *gone: str) -> ast.Call:
    return call_with(call, keywords=[keyword for keyword in call.keywords if keyword.arg not in gone])
