"""The repaired interpreter, tested in processes of its own: Triton decides at import whether it interprets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted((HERE / "interpreted").glob("test_*.py"))


def python(*arguments, **environment):
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=250)


@pytest.mark.parametrize("files", [FILES], ids=["interpreted"])
def test_in_an_interpreting_process(files):
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files), TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_install_without_the_variable_is_refused():
    done = python("-c", "import oracle.interpreter as i; i.install()", TRITON_INTERPRET="0")
    assert "InfrastructureError: set TRITON_INTERPRET=1 before triton is imported" in done.stderr


def test_unsupported_version_is_refused():
    code = "import triton; triton.__version__ = '3.11.0'; import oracle.interpreter as i; i.install()"
    done = python("-c", code, TRITON_INTERPRET="1")
    assert "InfrastructureError: triton 3.11.0 is not supported: install triton>=3.6,<3.10" in done.stderr


@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        ("bfloat16.install = lambda: None", "bfloat16 arithmetic"),
        ("memory.install = lambda: None", "undefined lanes"),
        ("memory.Memory.check = lambda *a: None", "out of bounds was not noticed"),
        ("libdevice.install = lambda p: None", "_arithmetic"),
        ("del stock.ScanOps", "has no ScanOps"),
    ],
)
def test_self_test_notices_a_patch_that_does_not_hold(sabotage, told):
    code = f"""
import triton.runtime.interpreter as stock
import oracle.interpreter as i
from oracle.interpreter import bfloat16, memory, libdevice
{sabotage}
i.install()
"""
    done = python("-c", code, TRITON_INTERPRET="1")
    assert "InfrastructureError" in done.stderr
    assert told in done.stderr.splitlines()[-1]
