"""Opens backends: a warm parent process per backend, from which one contained process per candidate is forked."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from oracle.clock import spending
from oracle.errors import InfrastructureError, UsageError
from oracle.verdict import candidate_id
from oracle.worker.isolation import missing_protection
from oracle.worker.policies import POLICIES
from oracle.worker.protocol import Backend, Session
from oracle.worker.session import WorkerSession
from oracle.worker.wire import ARENA_BYTES

BACKENDS = ("auto", "interpreter", "cuda")
START_SECONDS = 180.0
_ROOT = Path(__file__).resolve().parents[1]
# all that a candidate's process may see of the environment
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME")
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_EXTRA = {
    "interpreter": {"TRITON_INTERPRET": "1"},
    "cuda": {},
    "compiler": {},
}
_FAR = "tensors of 2^31 elements and more: offsets of 32 bits"
_NOT_EXERCISED = {
    "interpreter": [
        _FAR,
        "TF32 rounding of products",
        "races between programs and threads",
        "streams and asynchronous copies",
        "the choice that autotuning makes by time",
        "limits of registers and shared memory",
    ],
    "cuda": [_FAR, "undefined lanes and reversed program order"],
    "compiler": [],
}
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def open_backend(name: str = "auto", *, allow_unsafe: bool = False, without: Collection[str] = ()) -> Backend:
    """Start a backend: "interpreter" (CPU), "cuda", or "auto" (cuda where a CUDA device answers, else interpreter).

    `without` leaves out isolation layers by name (for tests). Raises UsageError for an unknown name, for "cuda"
    without a device, and without blocking of files and network unless `allow_unsafe`; InfrastructureError where the
    warm parent does not start.
    """
    if name not in BACKENDS:
        raise UsageError(f"--backend {name!r} is not one of {', '.join(BACKENDS)}")
    if name == "auto":
        name = "cuda" if cuda_device() else "interpreter"
    elif name == "cuda" and not cuda_device():
        raise UsageError("--backend cuda: no CUDA device answers here; use --backend interpreter")
    return WorkerBackend(name, without, allow_unsafe)


def cuda_device() -> str:
    """Name of the CUDA device that torch sees, or "". Asked in a process of its own: ours starts CUDA only to
    time eager PyTorch (`oracle.speed`)."""
    if not (os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg") or shutil.which("nvidia-smi")):
        return ""
    code = (
        "import torch; print(torch.cuda.get_device_name() if torch.version.cuda and torch.cuda.is_available() else '')"
    )
    try:
        answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


class WarmParent:
    """One running `oracle.worker.parent`. `layers`: {isolation layer: "" or why it is off}; `facts`: what its device
    told of itself (versions), once warm."""

    def __init__(self, backend: str, without: Collection[str]) -> None:
        self.base = tempfile.mkdtemp(prefix="agentloop-")
        os.chmod(self.base, 0o711)  # its folders are private; their owners must reach them
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the parent)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", "-m", "oracle.worker.parent"]
            self.process = subprocess.Popen(
                [*command, backend, str(theirs.fileno()), self.base, ",".join(without)],
                env=environment(backend),
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                start_new_session=True,
            )
        self.facts: dict[str, Any] = {}
        self.layers: dict[str, str] = self._told()

    def warm(self) -> None:
        """Wait until it can fork candidates. Raises InfrastructureError, as the constructor, where it does not start."""
        self.facts = self._told()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def order(self, number: int, candidate: int, source: str, entry: str) -> WorkerSession:
        """Ask for a process. Raises OSError where the parent is gone."""
        channel, theirs_channel = socket.socketpair()
        supervisor, theirs_supervisor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arena = arena_file()
        with theirs_channel, theirs_supervisor:
            descriptors = [theirs_channel.fileno(), arena, theirs_supervisor.fileno()]
            try:
                order = json.dumps({"number": number, "candidate": candidate})
                socket.send_fds(self.control, [order.encode()], descriptors)
            except OSError:
                channel.close()
                supervisor.close()
                os.close(arena)
                raise
        return WorkerSession(channel, supervisor, arena, source, entry)

    def close(self) -> None:
        """End the parent and all its children; it removes their folders."""
        self.control.close()
        if not self.facts:  # nothing was forked yet, and it may be busy for seconds
            self.process.kill()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stderr.close()
        shutil.rmtree(self.base, ignore_errors=True)

    def _told(self) -> dict[str, Any]:
        self.control.settimeout(START_SECONDS)
        try:
            data = self.control.recv(1 << 20)
        except OSError as error:
            data, reason = b"", str(error)
        else:
            reason = "it ended"
        if data:
            self.control.settimeout(None)
            return json.loads(data)
        self.process.kill()
        self.process.wait()
        self._stderr.seek(0)
        last = self._stderr.read().decode(errors="replace").strip().splitlines()[-1:]
        self.close()
        raise InfrastructureError(f"the worker process did not start ({reason}): {' '.join(last) or 'it said nothing'}")


class WorkerBackend:
    """See `oracle.worker.protocol.Backend`. A warm parent that ended is replaced at the next `open`."""

    def __init__(self, name: str, without: Collection[str] = (), allow_unsafe: bool = False) -> None:
        """Arguments and errors as `open_backend`'s; `name` is the backend's own."""
        self.name = name
        self._without = tuple(without)
        self._lock = threading.Lock()
        self._closed = False
        self._numbers = itertools.count(1)
        self._candidates: dict[str, int] = {}
        self._compiler: WorkerBackend | None = None
        self._compiler_lock = threading.Lock()  # it starts for seconds, in which this backend serves others
        self._parent = WarmParent(name, self._without)
        self.layers = self._parent.layers
        self.isolation = [layer for layer, reason in self.layers.items() if not reason]
        self.not_exercised = list(_NOT_EXERCISED[name])
        if not allow_unsafe:
            self._refuse_unsafe()
        self._parent.warm()
        self.facts = self._parent.facts

    def open(self, source: str, entry: str, *, noop: bool = False) -> Session:
        for _ in range(2):
            with spending("start"):
                parent = self._live_parent()
                try:
                    return parent.order(next(self._numbers), self._candidate(source), source, entry)
                except OSError:  # it is ending; the next one is new
                    parent.close()
        raise InfrastructureError("the worker process ends as soon as it starts")

    def _candidate(self, source: str) -> int:
        """A number of the source's own: processes of the same source share a user and a cache of compiled kernels."""
        with self._lock:
            return self._candidates.setdefault(candidate_id(source), len(self._candidates) + 1)

    def compiler(self) -> WorkerBackend | None:
        """Started when it is first asked for: many candidates fail before they are worth compiling."""
        if self.name != "interpreter":
            return None
        with self._compiler_lock:
            if self._closed:
                raise InfrastructureError(f"the {self.name} backend is closed")
            if self._compiler is None:
                self._compiler = WorkerBackend("compiler", self._without, allow_unsafe=True)
            return self._compiler

    def close(self) -> None:
        """End every open session; a judgement that is under way in another thread gets InfrastructureError."""
        with self._lock:
            self._closed = True
            self._parent.close()
        with self._compiler_lock:
            if self._compiler is not None:
                self._compiler.close()

    def _refuse_unsafe(self) -> None:
        missing = missing_protection(self.isolation, POLICIES[self.name])
        if missing:
            self.close()
            reasons = "; ".join(f"{layer}: {reason}" for layer, reason in self.layers.items() if reason)
            raise UsageError(
                f"candidates cannot be contained on this machine: {', '.join(missing)} ({reasons}). "
                "Use --allow-unsafe to run them all the same, in a container or machine that you can lose"
            )

    def _live_parent(self) -> WarmParent:
        with self._lock:
            if self._closed:
                raise InfrastructureError(f"the {self.name} backend is closed")
            if not self._parent.alive:
                self._parent.close()
                self._parent = WarmParent(self.name, self._without)
                self._parent.warm()
            return self._parent


def environment(backend: str) -> dict[str, str]:
    """All that a process which runs candidates may see of this one's environment."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    fixed = dict.fromkeys(_ONE_THREAD, "1") | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    path = {} if _ROOT.name in ("site-packages", "dist-packages") else {"PYTHONPATH": str(_ROOT)}
    return kept | fixed | path | _EXTRA[backend]


def arena_file() -> int:
    """A sealed memory file: no process can shrink it below a reader's feet, or grow it."""
    descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, ARENA_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor
