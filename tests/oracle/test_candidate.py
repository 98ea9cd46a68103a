"""How what a candidate raised is worded: the failure kind that it amounts to."""

import pytest
from triton.compiler.compiler import compile as triton_compile

from oracle.worker.candidate import Candidate


def test_whatever_leaves_tritons_compiler_is_a_compile_error():
    """Its passes raise bare RuntimeErrors ("PassManager::run failed")."""
    with pytest.raises(AssertionError) as inside:
        triton_compile("no source", target="none")
    candidate = Candidate("candidate.py", "")
    assert candidate.word(inside.value, "launch_error").kind == "compile_error"
    assert candidate.word(AssertionError(), "launch_error").kind == "launch_error"
