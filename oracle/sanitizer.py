"""What NVIDIA's compute-sanitizer says of a candidate that has passed: does a kernel touch memory beside its tensors?

On a GPU a read beside a tensor mostly finds mapped memory, and where its value does not reach the output nothing shows. The
sanitizer's `memcheck` sees every access. It takes seconds per candidate, so a run looks at a sample where it is asked to;
what it finds is noted and decides nothing, since a verdict must not depend on who is in the sample.

Not seen: uninitialised memory and races in shared memory (its other tools look for these), and accesses beside a tensor that
lie in another allocation.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oracle.backends import arena_file, environment
from oracle.errors import OracleError, UsageError
from oracle.worker.isolation import missing_protection
from oracle.worker.policies import LEFT_OUT, SANITIZED
from oracle.worker.protocol import RETURNED, Call
from oracle.worker.session import WorkerSession

TOOL = "compute-sanitizer"
CASES = 8  # of a candidate, spread over those that it passed
CALL_SECONDS = 120.0  # instrumented kernels take many times as long, and are compiled anew
_START_SECONDS = 120.0  # until the process takes what it is handed
_END_SECONDS = 30.0
_CONNECTIONS = 1000  # ports of this machine's loopback that the tool may choose from
_OPTIONS = (
    *("--tool", "memcheck", "--target-processes", "application-only", "--report-api-errors", "no"),
    *("--max-connections", str(_CONNECTIONS), "--launch-timeout", str(int(_START_SECONDS))),
)
_ERROR = re.compile(r"^========= ((?:Invalid|Misaligned|Out-of-range).*)$", re.MULTILINE)
_NEAREST = re.compile(r"^=========\s+and is (.*)$", re.MULTILINE)
_SUMMARY = "ERROR SUMMARY"


@dataclass(frozen=True)
class Looked:
    """`cases` run under the sanitizer; `error`, the first that it printed, or ""; else `why` it could not say, or ""."""

    cases: int = 0
    error: str = ""
    why: str = ""

    def words(self) -> str:
        """One line for a verdict's notes."""
        if self.error:
            return f"{TOOL}: {self.error}, in case {self.cases} of those looked at"
        return f"{TOOL}: {self.why}" if self.why else f"{TOOL}: no error in {self.cases} cases"


def find() -> str | None:
    """Where the tool is, None where it is not."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(TOOL) or shutil.which(TOOL, path=f"{home}/bin")


def check_sanitizer(backend: str) -> None:
    """UsageError where no candidate can be looked at."""
    if backend != "cuda" or find() is None:
        raise UsageError(f"--sanitize needs --backend cuda and {TOOL} (part of the CUDA toolkit) on PATH; leave it out")


def look(source: str, entry: str, calls: Sequence[Call], layers: Collection[str]) -> Looked:
    """Run the calls under the sanitizer, until an error shows, in a process contained by those of `layers` that can be laid
    on there; not at all where these do not block files and network."""
    layers = [layer for layer in layers if layer not in LEFT_OUT]
    if missing := missing_protection(layers, SANITIZED):
        return Looked(why=f"not run: {', '.join(missing)}")
    tool = find()
    if tool is None:
        return Looked(why="it is not on this machine")
    with tempfile.TemporaryDirectory(prefix="agentloop-", ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        base.chmod(0o711)
        try:
            cases, ended = _run(tool, base, source, entry, calls, layers)
        except (OracleError, OSError) as failed:
            cases, ended = 0, f"not started: {failed}"
        log = (base / "log").read_text(errors="replace") if (base / "log").exists() else ""
    error, nearest = _ERROR.search(log), _NEAREST.search(log)
    if error:
        return Looked(cases, error=error[1] + (f", {nearest[1]}" if nearest else ""))
    if ended or _SUMMARY not in log:
        last = log.strip().rpartition("\n")[2].strip("= ")
        return Looked(cases, why=f"{ended or 'it ended without a summary'}; its last word: {last or 'none'}")
    return Looked(cases)


def _run(
    tool: str, base: Path, source: str, entry: str, calls: Sequence[Call], layers: Collection[str]
) -> tuple[int, str]:
    """How many calls were made, and why no more, or ""."""
    process, session = _start(tool, base, source, entry, layers)
    cases = 0
    try:
        for call in calls:
            outcome = session.call(call, CALL_SECONDS)
            cases += 1
            if outcome.status != RETURNED:
                break
        session.leave()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        session.close()
    return cases, "" if outcome.status == RETURNED else f"{outcome.status}: {outcome.message}"


def _start(
    tool: str, base: Path, source: str, entry: str, layers: Collection[str]
) -> tuple[subprocess.Popen[bytes], WorkerSession]:
    """The tool, and a session with the process that it starts. That process is handed its descriptors through a socket: not
    every version of the tool passes them on."""
    scratch, path = base / "scratch", str(base / "door")
    scratch.mkdir(mode=0o700)
    module = [sys.executable, "-P", "-m", "oracle.worker.sanitized", path, str(scratch), ",".join(layers)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(path)
        door.listen(1)
        door.settimeout(_START_SECONDS)
        with open(base / "said", "wb") as said:
            process = subprocess.Popen(
                [tool, *_OPTIONS, "--log-file", str(base / "log"), *module],
                env=environment("cuda") | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            inside, _ = door.accept()
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            last = (base / "said").read_text(errors="replace").strip().rpartition("\n")[2]
            raise OSError(f"the process did not ask for its work: {last or 'it said nothing'}") from None
    channel, theirs = socket.socketpair()
    supervisor, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arena = arena_file()
    with inside, theirs, told:
        socket.send_fds(inside, [b"work"], [theirs.fileno(), arena])
        pidfd = os.pidfd_open(process.pid)
        socket.send_fds(told, [b"{}"], [pidfd])
        os.close(pidfd)
    return process, WorkerSession(channel, supervisor, arena, source, entry)
