"""Errors of the loop that a user sees: one line, an exit code, never a traceback."""

from __future__ import annotations

from oracle.errors import InfrastructureError, OracleError, UsageError

__all__ = [
    "EXIT_FAIL",
    "EXIT_INFRASTRUCTURE",
    "EXIT_INTERRUPTED",
    "EXIT_USAGE",
    "InfrastructureError",
    "OracleError",
    "UsageError",
]

EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_INTERRUPTED = 130
