"""Errors of the loop that a user sees: one line, an exit code, never a traceback."""

from __future__ import annotations

from typing import Literal

from oracle.errors import InfrastructureError, OracleError, UsageError

__all__ = [
    "EXIT_FAIL",
    "EXIT_INFRASTRUCTURE",
    "EXIT_INTERRUPTED",
    "EXIT_USAGE",
    "EpisodeFault",
    "InfrastructureError",
    "OracleError",
    "StorageError",
    "UsageError",
]

EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_INTERRUPTED = 130


class EpisodeFault(InfrastructureError):
    """Our trouble with one request or one judgement: the attempt is owed, the other episodes go on.

    `detail` is a traceback of our own code where there is one. `alone`: it says nothing of other requests or judgements.
    """

    stage: Literal["request", "judge"]
    alone = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class StorageError(InfrastructureError):
    """The run folder cannot be written (disk full, read-only): the run stops, what is recorded stays."""
