"""Python source to syntax trees, from any thread.

CPython (seen in 3.11.7) counts the depth of the tree that it builds in one place for all threads: two threads that parse
at once may both get a SystemError, "AST constructor recursion depth mismatch". Whatever parses in a process of ours
parses here, one at a time.
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """`ast.parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode="eval").body
