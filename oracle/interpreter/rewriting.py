"""Kernel source rewritten so that Python runs it as Triton's compiler would read it.

Python's own `and`, `or`, `not`, chained comparisons and `if` ask a block for one truth value; the compiler works on
whole blocks or refuses. Assigned values become tensors, and an index of `range` can be used as one. The function is
rebuilt inside a scope that holds the helpers and its closure, so that the candidate's globals stay as they are.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import triton.language as tl
import triton.runtime.interpreter as stock

_HELPERS = "_triton_"
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Is: "is_",
    ast.IsNot: "is_not",
}


class LoopIndex(int):
    """An index of `range`: an int for Python and, when asked for anything an int lacks, an int32 tensor."""

    def __getattr__(self, name: str) -> Any:
        return getattr(stock.interpreter_semantic.to_tensor(int(self)), name)


class Helpers:
    """What rewritten kernels call."""

    @staticmethod
    def value(assigned: Any) -> Any:
        """An assigned Python number is a tensor from then on."""
        return stock.interpreter_semantic.to_tensor(int(assigned) if type(assigned) is LoopIndex else assigned, False)

    @staticmethod
    def loop(iterable: Iterable[Any]) -> Iterable[Any]:
        return map(LoopIndex, iterable) if isinstance(iterable, range) else iterable

    @staticmethod
    def test(condition: Any) -> Any:
        """A condition of `if` or `while`: one value. A block is refused, as by the compiler."""
        if isinstance(condition, tl.tensor) and condition.handle.data.size != 1:
            raise ValueError(f"the condition is a block of {condition.handle.data.size} values; `if` needs one value")
        return condition

    @staticmethod
    def negate(operand: Any) -> Any:
        return operand.__not__() if isinstance(operand, tl.tensor) else not operand

    @staticmethod
    def logical(both: bool, *operands: Callable[[], Any]) -> Any:
        """`and` (both) or `or`: Python values may end the evaluation, tensors never do."""
        result: Any = None
        value: Any = None
        for operand in operands:
            value = operand()
            if not isinstance(value, tl.tensor):
                if bool(value) is not both:
                    return value
            elif result is None:
                result = value
            else:
                result = result.logical_and(value) if both else result.logical_or(value)
        return value if result is None else result

    @staticmethod
    def chain(names: tuple[str, ...], *operands: Any) -> Any:
        """`a < b < c`: every pair compared, the results joined by `and`."""
        pairs = zip(names, operands, operands[1:], strict=False)
        return Helpers.logical(True, *((lambda n=n, a=a, b=b: getattr(operator, n)(a, b)) for n, a, b in pairs))


class _Rewriter(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) > 1:
            raise ValueError("a = b = value: simultaneous assignment is not supported in a kernel")
        node.value = _call("value", node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call("loop", node.iter)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("test", node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("test", node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("test", node.test)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("negate", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(child, ast.NamedExpr) for child in ast.walk(node)):
            return node  # a walrus inside a lambda would bind in the wrong scope
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        thunks: list[ast.expr] = [ast.Lambda(args=empty, body=value) for value in node.values]
        return _call("logical", ast.Constant(isinstance(node.op, ast.And)), *thunks)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 or not all(type(op) in _COMPARE for op in node.ops):
            return node
        names = ast.Tuple([ast.Constant(_COMPARE[type(op)]) for op in node.ops], ast.Load())
        return _call("chain", names, node.left, *node.comparators)


def _call(helper: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(value=ast.Name(id=_HELPERS, ctx=ast.Load()), attr=helper, ctx=ast.Load())
    return ast.Call(func=function, args=list(args), keywords=[])


def rewritten(function: Any) -> Any:
    """The function rebuilt from its rewritten source: same file and lines, globals, closure and defaults.

    Raises ValueError for source that Triton could not read either.
    """
    tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(function)[0])))
    definition = next(_definitions(tree), None)
    if definition is None:
        raise ValueError("@jit functions should be defined in a Python file")
    definition.decorator_list = []
    definition.returns = None
    for argument in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs):
        argument.annotation = None
    definition.body = [_Rewriter().visit(statement) for statement in definition.body]
    definition.args.defaults = []
    definition.args.kw_defaults = [None for _ in definition.args.kwonlyargs]
    free = function.__code__.co_freevars
    scope = ast.parse(f"def _scope_({', '.join((_HELPERS, *free))}): return {definition.name}").body[0]
    assert isinstance(scope, ast.FunctionDef)
    scope.body.insert(0, definition)
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)
    module = ast.fix_missing_locations(ast.Module(body=[scope], type_ignores=[]))
    namespace: dict[str, Any] = {}
    code = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    exec(code, function.__globals__, namespace)
    rebuilt = namespace["_scope_"](Helpers, *(cell.cell_contents for cell in function.__closure__ or ()))
    rebuilt.__defaults__, rebuilt.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return rebuilt


def _definitions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
