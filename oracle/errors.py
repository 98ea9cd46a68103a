"""Who owns an error. A candidate's failure is never an exception here: it is a value (`oracle.verdict.Failure`)."""

from __future__ import annotations


class OracleError(Exception):
    """Base of what this package raises on purpose; its text is one line fit for a user."""


class UsageError(OracleError):
    """The caller asked for something that cannot be: names the option, what is allowed and what to do next."""


class InfrastructureError(OracleError):
    """Our trouble (a worker that will not start, no memory left for the judge): never a candidate's failure."""


class WorkerLost(InfrastructureError):
    """The warm parent died, and every candidate's process with it. The next process comes from a new one."""
