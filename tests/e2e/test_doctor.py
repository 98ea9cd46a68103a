"""`agentloop doctor` says what can be judged here, and how candidates are contained."""

from __future__ import annotations

import json
import subprocess
import sys

from oracle.worker.isolation import WITHOUT


def test_doctor_reports_versions_and_every_layer():
    done = subprocess.run(
        [sys.executable, "-m", "agentloop.cli", "doctor", "--json"], capture_output=True, text=True, timeout=200
    )
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ready"] else 3), done.stderr
    assert {version["name"]: version["fits"] for version in report["versions"]} == {
        "python": True,
        "torch": True,
        "triton": True,
    }
    interpreter = report["backends"][0]
    assert (interpreter["name"], interpreter["available"], interpreter["self_test"]) == ("interpreter", True, "passed")
    assert {"landlock", "seccomp", "network_namespace", "rlimits"} <= set(interpreter["layers"])
    assert WITHOUT.keys() <= interpreter["layers"].keys()
    assert report["ready"] == (interpreter["unsafe"] == [])
