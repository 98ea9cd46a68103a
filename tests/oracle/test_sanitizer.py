"""compute-sanitizer where there is no GPU: what its process may do, and that nothing is run uncontained or unasked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.sanitizer import look
from oracle.worker.isolation import LAYERS
from oracle.worker.policies import LEFT_OUT
from tests.helpers.command import main

PROBE = """
import json, sys
from oracle.worker.isolation import Cell, probe
from oracle.worker.policies import LEFT_OUT, SANITIZED
report = probe(Cell(sys.argv[1], 0, SANITIZED), LEFT_OUT | {"private_scratch"})
refused = []
for path in ("/proc/sys/vm/swappiness", "/dev/tty", "/proc/self/oom_score_adj", "/etc/hosts"):
    try:
        open(path, "r+").close()
    except OSError:
        refused.append(path)
print(json.dumps([report, refused]))
"""


def test_its_process_writes_nothing_of_the_machine_and_reaches_no_network(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(scratch)], cwd=root, capture_output=True, text=True, check=True, timeout=60
    )
    report, refused = json.loads(done.stdout)
    if report["landlock"] or report["seccomp"]:
        pytest.skip(f"this kernel has not both: {report}")
    assert refused == ["/proc/sys/vm/swappiness", "/dev/tty", "/proc/self/oom_score_adj", "/etc/hosts"]


def test_nothing_is_run_where_files_and_network_are_not_blocked() -> None:
    for layers in ([], ["landlock"], ["seccomp"], ["landlock", "network_namespace"]):
        assert look("", "f", [], layers).why.startswith("not run: "), layers
    assert not look("", "f", [], [layer for layer in LAYERS if layer not in LEFT_OUT]).why.startswith("not run")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--model", "offline", "--tasks", "seed/relu", "--sanitize", "1", "--runs-dir"),
        ("judge", "oracle/corpus/kernels/seed/softmax__bug_other_zero.py", "--task", "seed/softmax", "--sanitize"),
    ],
)
def test_without_a_gpu_it_is_refused(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*arguments, str(tmp_path / "runs")] if arguments[0] == "run" else [*arguments]
    assert main(*given, "--backend", "interpreter") == 2
    assert "--sanitize needs --backend cuda" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
