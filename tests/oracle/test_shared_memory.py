"""A process that needs a GPU's devices leaves nothing below /dev that a later one could find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import json, os, sys
from oracle.worker.isolation import Cell, probe
from oracle.worker.policies import LEFT_OUT, POLICIES
os.makedirs(sys.argv[1])
report = probe(Cell(sys.argv[1], 0, POLICIES["cuda"]), {*LEFT_OUT, *sys.argv[3:]})
done = []
for path, mode in ((sys.argv[2], "r"), (sys.argv[2] + "-new", "w"), ("/dev/null", "r+"), ("/dev/full", "r")):
    try:
        open(path, mode).close()
        done.append(path)
    except OSError:
        pass
print(json.dumps([report, done, "null" in os.listdir("/dev")]))
"""


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
@pytest.mark.parametrize("without", [[], ["private_scratch"]], ids=["mounts", "no mounts"])
def test_what_lies_in_shared_memory_is_out_of_reach(tmp_path: Path, without: list[str]):
    left = Path(f"/dev/shm/left-by-{os.getpid()}")
    left.touch()
    try:
        command = [sys.executable, "-c", PROBE, str(tmp_path / "scratch"), str(left), *without]
        root = Path(__file__).parents[2]
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=60).stdout
        (report, done, listed), new = json.loads(answer), Path(f"{left}-new")
        if report["landlock"]:
            pytest.skip(f"this kernel has no Landlock: {report}")
        own = [] if report["private_scratch"] else [str(new)]  # a file system that ends with the process
        assert (done, listed) == ([*own, "/dev/null", "/dev/full"], True)
        assert not new.exists()
    finally:
        left.unlink()
