"""What can be said of a source without running it."""

from __future__ import annotations

import warnings

from oracle.syntax import parse
from oracle.verdict import Failure

SOURCE_LIMIT = 1 << 20  # characters; a longer "kernel" is refused, not parsed


def check_source(source: str) -> Failure | None:
    """`no_code` for nothing to run, `syntax_error` for what Python cannot parse, else None."""
    if not source.strip():
        return Failure("no_code", "base", "the answer holds no code")
    if len(source) > SOURCE_LIMIT:
        return Failure("no_code", "base", f"the source has {len(source)} characters; the limit is {SOURCE_LIMIT}")
    if "\0" in source:
        return Failure("syntax_error", "base", "the source holds a NUL character: it is not a Python text file")
    try:
        source.encode()
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        return Failure("syntax_error", "base", f"line {line} is not UTF-8 text")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(source)
    except SyntaxError as error:
        return Failure("syntax_error", "base", f"line {error.lineno}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Failure("syntax_error", "base", f"Python cannot parse it: {type(error).__name__}")
    return None if tree.body else Failure("no_code", "base", "the file holds no statement")
