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


SABOTAGE = {
    "triton.__version__ = '3.11.0'": "triton 3.11.0 is not supported: install triton>=3.6,<3.10",
    "bfloat16.install = lambda: None": "bfloat16 arithmetic",
    "memory._semantic_load = lambda f: f": "undefined lanes",
    "memory.Memory.check = lambda *a: None": "out of bounds was not noticed",
    "libdevice.install = lambda p: None": "_arithmetic",
    "launches.current = type(launches.current)()": "launches are not counted",
    "del stock.ScanOps": "has no ScanOps",
}
FORKS = """
import os, sys
import triton
import triton.runtime.interpreter as stock
import oracle.interpreter as layer
from oracle.errors import InfrastructureError
from oracle.interpreter import bfloat16, launches, libdevice, memory
for sabotage in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    exec(sabotage)
    try:
        layer.install()
        print("installed", flush=True)
    except InfrastructureError as error:
        print(error, flush=True)
    os._exit(0)
"""


def test_self_test_notices_a_patch_that_does_not_hold():
    lines = python("-c", FORKS, *SABOTAGE, TRITON_INTERPRET="1").stdout.splitlines()
    for sabotage, told, line in zip(SABOTAGE, SABOTAGE.values(), lines, strict=True):
        assert told in line, sabotage
