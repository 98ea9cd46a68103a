"""Which names a Python file binds and uses, read from its syntax tree alone."""

from __future__ import annotations

import ast


def stray_words(tree: ast.Module) -> list[int]:
    """Lines (from 0) of one-line top-level statements that are only words bound nowhere ("python", "{{ code }}",
    "Note: done"): they can do nothing but raise a NameError."""
    bound = bound_names(tree, deep=True)
    plain = (ast.Name, ast.Set, ast.Tuple, ast.List, ast.Expr, ast.AnnAssign, ast.expr_context, ast.Constant)
    lines = []
    for node in tree.body:
        if not isinstance(node, (ast.Expr, ast.AnnAssign)) or node.lineno != node.end_lineno:
            continue
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            continue
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        if names and not bound & set(names) and all(isinstance(part, plain) for part in ast.walk(node)):
            lines.append(node.lineno - 1)
    return lines


def bound_names(tree: ast.Module, deep: bool = False) -> set[str]:
    """Names bound at the top level (inside `if`, `try`, `with` too); `deep`: bound anywhere, parameters included."""
    names: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            if not deep:
                continue
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Lambda) and not deep:
            continue
        stack.extend(ast.iter_child_nodes(node))
    return names


def used_names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
