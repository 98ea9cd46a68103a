"""The judge's own proof that kernels matter: the same source with every Triton kernel emptied.

Run in a fresh process, the emptied source must give other bytes than the candidate did; if it gives the same, nothing
depends on the kernels. Only the source is read and rewritten here, nothing of it is executed.

Recognised: functions decorated by any spelling of `triton.jit` (aliases, calls with options, `getattr(triton, "jit")`,
decorators of the candidate's own that pass their argument on to it) and functions handed to it later
(`kernel = triton.jit(body)`). Not recognised: kernels built from strings. Triton itself refuses those, because it
must find a kernel's source in a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from oracle.syntax import parse

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def emptied(source: str) -> str:
    """The source with the body of every `@triton.jit` function replaced by `pass`; signatures and decorators stay.

    Raises SyntaxError for a source that Python cannot parse. Comments and formatting are not kept.
    """
    tree = parse(source)
    jit = _JitNames(tree)
    wrapped = set(jit.wrapped(tree))
    for node in ast.walk(tree):
        if isinstance(node, _Function) and (
            node.name in wrapped or any(jit.is_jit(decorator) for decorator in node.decorator_list)
        ):
            node.body = [ast.copy_location(ast.Pass(), node.body[0])]
    return ast.unparse(tree) + "\n"


class _JitNames:
    """The names under which a module knows `triton.jit`."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        before = -1
        while before != len(self.names):  # an alias of an alias needs another pass
            before = len(self.names)
            for node in ast.walk(tree):
                self.names.update(self._bound(node))

    def is_jit(self, node: ast.expr) -> bool:
        """Whether an expression is `triton.jit`, an alias, or a call of it with options (a decorator factory)."""
        if isinstance(node, ast.Attribute):
            return node.attr == "jit"
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
                return isinstance(node.args[1], ast.Constant) and node.args[1].value == "jit"
            partial = getattr(node.func, "id", getattr(node.func, "attr", "")) == "partial"
            return self.is_jit(node.func) or (partial and bool(node.args) and self.is_jit(node.args[0]))
        return False

    def wrapped(self, tree: ast.AST) -> Iterator[str]:
        """Names handed to jit as a function: `jit(name)`, `jit(options)(name)`, `autotune(...)(jit(name))`."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and self.is_jit(node.func):
                handed = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "fn")]
                yield from (argument.id for argument in handed if isinstance(argument, ast.Name))

    def _bound(self, node: ast.AST) -> Iterator[str]:
        """Names that a statement binds to jit."""
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "triton":
            yield from (alias.asname or alias.name for alias in node.names if alias.name == "jit")
        elif isinstance(node, ast.Assign) and self.is_jit(node.value) and not self._is_kernel(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, _Function):
            arguments = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            if arguments & set(self.wrapped(node)):
                yield node.name

    def _is_kernel(self, node: ast.expr) -> bool:
        """`jit(name)` is a kernel already, where `jit(options)` is still a decorator."""
        return isinstance(node, ast.Call) and self.is_jit(node.func) and bool(node.args)
