"""Wrong kernels that once passed: each must fail, and at a case that shows its fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloop.content import load_tasks
from oracle.judge import Judge
from oracle.verdict import FAIL

WRONG = sorted((Path(__file__).parent / "wrong").glob("*.py"))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_kernel_fails(backend, path):
    task = load_tasks()[f"ops/{path.stem.partition('__')[2]}"]
    verdict = Judge(backend).judge(task, path.read_text(), naive=False, minimized=False)
    assert verdict.status == FAIL
    assert not verdict.failure.loud or verdict.failure.kind == "out_of_bounds"
