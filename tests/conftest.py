"""Fixtures shared by all tests: one warm backend for the whole session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from oracle.backends import WorkerBackend, open_backend

SECRET = "sk-test-only-never-to-be-seen"


@pytest.fixture(scope="session")
def backend() -> Iterator[WorkerBackend]:
    """The interpreter backend with every layer that this machine has, started beside a key in the environment."""
    os.environ["OPENAI_API_KEY"] = SECRET
    opened = open_backend("interpreter")
    assert isinstance(opened, WorkerBackend)
    try:
        yield opened
    finally:
        opened.close()
        del os.environ["OPENAI_API_KEY"]
