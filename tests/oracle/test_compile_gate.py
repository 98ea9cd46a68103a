"""The compile gate, in a process of its own: what it passes, what it refuses and why."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton

HERE = Path(__file__).parent
REFUSED = {
    "breaks": ("break_kernel", "unsupported AST node type: Break"),
    "plain_global": ("global_kernel", "Cannot access global variable FACTOR"),
    "retyped": ("retyped_kernel", "total"),
    "block_if": ("block_if_kernel", ""),
    "too_large": ("large_kernel", "out of resource: shared memory"),
    "tuned": ("tuned_kernel", "only the second configuration is wrong"),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    entries = ["right", "raises", "block_pointer", *REFUSED]
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.oracle.compile_gate_child", HERE / "compile_gate_candidates.py", *entries]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=250, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr[-3000:]
    found, over, broken = map(json.loads, done.stdout.splitlines())
    return {**found, "over": over, "broken": broken}


def test_a_right_kernel_compiles(reports):
    assert reports["right"] == {"compiled": 1, "refusals": [], "complete": True, "trouble": None}


def test_what_host_code_raises_is_not_the_compilers(reports):
    assert reports["raises"] == {"compiled": 1, "refusals": [], "complete": True, "trouble": None}


@pytest.mark.parametrize("entry", REFUSED)
def test_refused(reports, entry):
    kernel, told = REFUSED[entry]
    (refusal,) = reports[entry]["refusals"]
    assert refusal["kernel"] == kernel
    assert told in refusal["message"]
    assert "\n" not in refusal["message"]
    assert refusal["absent"] is None


def test_an_absent_api_is_told_apart(reports):
    refusals = reports["block_pointer"]["refusals"]
    if refusals:
        assert refusals[0]["absent"] == (
            f"triton {triton.__version__} no longer has tl.make_block_ptr; an earlier version does"
        )
    else:
        assert reports["block_pointer"]["compiled"] == 1


def test_nothing_is_begun_after_the_budget(reports):
    assert reports["over"] == {"compiled": 0, "refusals": [], "complete": False, "trouble": None}


def test_a_cache_that_cannot_be_written_is_no_refusal(reports):
    assert reports["broken"]["refusals"] == []
    assert reports["broken"]["trouble"].startswith(("NotADirectoryError: ", "FileExistsError: "))
