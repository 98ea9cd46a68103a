"""What a run was made on: versions, hardware, commit; for `config.json` and for reading a run later."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import agentloop

PACKAGES = ("torch", "triton", "numpy", "openai", "ml_dtypes")


def versions() -> dict[str, str]:
    """Versions of Python, this package and what verdicts may depend on."""
    found = {"python": platform.python_version(), "agentloop": agentloop.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores and GPUs. CUDA is not started: candidates' processes are forked after this."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": _lines(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]),
    }


def git_commit() -> str | None:
    """The commit of the checkout this package runs from; None for an installed wheel."""
    root = Path(agentloop.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    lines = _lines(["git", "-C", str(root), "rev-parse", "HEAD"])
    return lines[0] if lines else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _lines(command: list[str]) -> list[str]:
    """A command's output lines; none where it is absent, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()
