"""Which names a Python file binds and uses, read from its syntax tree alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Names:
    """`top`: bound at the top level (inside `if`, `try`, `with` too). `bound`: bound anywhere, parameters included.
    `lacking`: used, and bound nowhere in the file (builtins among them)."""

    top: frozenset[str]
    bound: frozenset[str]
    lacking: frozenset[str]


def names(tree: ast.Module) -> Names:
    """The names of a file, in one walk over its tree."""
    top: set[str] = set()
    inner: set[str] = set()
    used: set[str] = set()
    stack: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while stack:
        node, outside = stack.pop()
        bound = top if outside else inner
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        within = outside and not isinstance(node, SCOPES)
        stack.extend((child, within) for child in ast.iter_child_nodes(node))
    return Names(frozenset(top), frozenset(top | inner), frozenset(used - top - inner))


def stray_words(tree: ast.Module) -> list[int]:
    """Lines (from 0) of one-line top-level statements that are only words bound nowhere ("python", "{{ code }}",
    "Note: done"): they can do nothing but raise a NameError."""
    bound = names(tree).bound
    plain = (ast.Name, ast.Set, ast.Tuple, ast.List, ast.Expr, ast.AnnAssign, ast.expr_context, ast.Constant)
    lines = []
    for node in tree.body:
        if not isinstance(node, (ast.Expr, ast.AnnAssign)) or node.lineno != node.end_lineno:
            continue
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            continue
        words = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        if words and not bound & set(words) and all(isinstance(part, plain) for part in ast.walk(node)):
            lines.append(node.lineno - 1)
    return lines
