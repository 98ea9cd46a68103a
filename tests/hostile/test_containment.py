"""Programs that try to leave their cell: each is refused, noticed where the contract forbids it, and leaves nothing.

A candidate reports what it got by raising: "denied" where the attempt failed, anything else where it succeeded.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest

from oracle.backends import WorkerBackend
from oracle.worker.protocol import CRASHED, RAISED, RETURNED, Call
from tests.conftest import SECRET
from tests.hostile.attempts import INPUT, PRELUDE, attempt, buffer, kinds, nothing_left, source

ROOT = Path(__file__).parents[2]


def trying(statement: str, top: str = "") -> str:
    """A candidate that tries a statement and tells whether an OSError stopped it."""
    body = f"""
try:
    {statement}
except OSError:
    raise RuntimeError('denied')
raise RuntimeError('done')
"""
    return source(body, top)


def denied(backend: WorkerBackend, statement: str, top: str = "") -> set[str]:
    """The kinds of findings of a statement that must be refused."""
    outcome = attempt(backend, trying(statement, top))
    assert (outcome.status, outcome.message) == (RAISED, "RuntimeError: denied"), outcome
    return kinds(outcome)


def test_the_layers_are_those_that_the_circumstances_allow(backend: WorkerBackend):
    """`tests.hostile.ways` runs these tests as an ordinary user and where namespaces are refused: fewer layers, said so."""
    always = {"environment", "descriptors", "rlimits", "capabilities", "parent_death_signal", "no_new_privs"}
    assert always | {"landlock", "seccomp"} <= set(backend.isolation)
    assert ("user" in backend.isolation) == (os.geteuid() == 0)
    namespaces = {"network_namespace", "pid_namespace", "ipc_namespace", "private_scratch"}
    assert namespaces & set(backend.isolation) in (namespaces, set())
    assert all(reason for layer, reason in backend.layers.items() if layer not in backend.isolation)


# files


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", str(Path.home()), str(ROOT), np.__path__[0]])
def test_writing_outside_the_private_folder(backend: WorkerBackend, place: str):
    target = Path(place) / "owned-by-a-candidate"
    assert denied(backend, f"open({str(target)!r}, 'w')") == {"tampering"}
    assert not target.exists()


def test_writing_into_the_private_folder_is_tampering(backend: WorkerBackend):
    """It works where that is a file system of its own, and then alone: no disk can be filled."""
    body = "with open('note', 'w') as file:\n    file.write('x')\nreturn right(x)"
    outcome = attempt(backend, source(body))
    assert outcome.status == (RETURNED if "private_scratch" in backend.isolation else RAISED), outcome
    assert kinds(outcome) == {"tampering"}


def test_rewriting_its_own_source_is_tampering(backend: WorkerBackend):
    outcome = attempt(backend, source("open(__file__, 'a').write('#')\nreturn right(x)"))
    assert (outcome.status, kinds(outcome)) == (RETURNED, {"tampering"}), outcome


def test_filling_the_disk_stops_at_the_private_folders_size(backend: WorkerBackend):
    statement = "\n    ".join(["for i in range(100):", "    open(f'f{i}', 'wb').write(bytes(8 << 20))"])
    assert "tampering" in denied(backend, statement)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        str(ROOT / "pyproject.toml"),
        str(ROOT / "tasks" / "seed" / "softmax.py"),
        str(ROOT / "oracle" / "reference.py"),
        "/proc/JUDGE/environ",
        "/proc/JUDGE/mem",
        "/proc/1/environ",
        "/dev/mem",
        "/dev/tty",
    ],
)
def test_reading_what_is_not_its_own(backend: WorkerBackend, path: str):
    path = path.replace("JUDGE", str(os.getpid()))
    denied(backend, f"open({path!r}, 'rb').read()")


@pytest.mark.parametrize(
    "statement",
    [
        "os.chmod('/tmp', 0o700)",
        "os.chmod(os.__file__, 0o777)",
        "os.utime(os.__file__)",
        "os.symlink('/etc/passwd', '/tmp/owned-link')",
        "os.link(os.__file__, 'mine')",
        "os.rename(os.__file__, 'mine')",
        "os.truncate(os.__file__, 0)",
        "os.remove(os.__file__)",
        "os.listdir('/tmp')",
        "os.setxattr(os.__file__, 'user.x', b'1')",
        "os.mknod('/tmp/owned-node')",
        "os.open('/tmp', os.O_TMPFILE | os.O_WRONLY)",
    ],
)
def test_changing_files_without_opening_them(backend: WorkerBackend, statement: str):
    denied(backend, statement, "import os")


@pytest.mark.parametrize("package", ["oracle.reference", "agentloop", "tasks.seed.softmax"])
def test_importing_the_judge_or_the_tasks(backend: WorkerBackend, package: str):
    outcome = attempt(backend, f"import {package}")
    assert outcome.error_kind == "import_error", outcome


# secrets


def test_the_key_is_nowhere(backend: WorkerBackend):
    body = """
    import os, ctypes
    seen = repr(dict(os.environ)) + open('/proc/self/environ').read()
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    raise RuntimeError(f"{'OPENAI_API_KEY' in seen} {'sk-test' in seen} {getenv(b'OPENAI_API_KEY')} {'PATH' in seen}")
    """
    outcome = attempt(backend, source(body))
    assert outcome.message == "RuntimeError: False False None True"
    assert os.environ["OPENAI_API_KEY"] == SECRET


@pytest.mark.parametrize(
    "statement", ["os.listdir({!r})", "open({!r} + '/candidate.py').read()", "open({!r} + '/x', 'w')"]
)
def test_another_candidates_folder(backend: WorkerBackend, statement: str):
    other = backend.open(source("return right(x)"), "entry")
    try:
        other.call(Call((buffer(INPUT),)), 30.0)
        (folder,) = os.listdir(backend._parent.base)
        session = backend.open(trying(statement.format(f"{backend._parent.base}/{folder}"), "import os"), "entry")
        outcome = session.call(Call((buffer(INPUT),)), 30.0)
        session.close()
        assert outcome.message == "RuntimeError: denied", outcome
    finally:
        other.close()
    nothing_left(backend)


# network


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_sockets(backend: WorkerBackend, family: str, kind: str):
    assert denied(backend, f"socket.socket(socket.{family}, socket.{kind})", "import socket") == {"tampering"}


def test_connecting_to_a_listening_server(backend: WorkerBackend):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        found = denied(backend, f"urllib.request.urlopen('http://{address[0]}:{address[1]}')", "import urllib.request")
        assert found == {"tampering"}
        server.settimeout(0.05)
        with pytest.raises(TimeoutError):
            server.accept()


# processes


@pytest.mark.parametrize(
    "statement",
    [
        "os.fork()",
        "subprocess.run(['/bin/true'])",
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.forkpty()",
    ],
)
def test_starting_a_process(backend: WorkerBackend, statement: str):
    assert denied(backend, statement, "import os, subprocess") == {"tampering"}


@pytest.mark.parametrize(
    "statement",
    [
        "os.kill(JUDGE, 9)",
        "os.kill(JUDGE, 0)",
        "os.kill(-1, 9)",
        "os.pidfd_open(JUDGE)",
        "os.setsid()",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.sched_setaffinity(JUDGE, [0])",
        "resource.prlimit(JUDGE, resource.RLIMIT_NOFILE, (8, 8))",
        "os.setuid(0)",
        "os.chroot('.')",
        "os.nice(-5)",
    ],
)
def test_reaching_other_processes(backend: WorkerBackend, statement: str):
    denied(backend, statement.replace("JUDGE", str(os.getpid())), "import os, resource")


@pytest.mark.parametrize(
    "call",
    [
        "libc.fork()",
        "libc.vfork()",
        "-libc.system(b'true')",
        "libc.ptrace(16, 1, 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, b'')",
        "libc.socket(2, 1, 0)",
        "libc.shmget(0, 4096, 0o1777)",
        "libc.open(b'/etc/passwd', 0)",
        "libc.open(b'/tmp/owned', 0o101, 0o600)",
        "libc.syscall(425, 8, 0)",
        "libc.syscall(321, 0, 0, 0)",
        "libc.syscall(435, 0, 0)",
    ],
)
def test_system_calls_past_python(backend: WorkerBackend, call: str):
    body = f"import ctypes\nlibc = ctypes.CDLL(None)\nresult = {call}\nraise RuntimeError(str(result < 0))"
    outcome = attempt(backend, source(body))
    assert outcome.message == "RuntimeError: True", outcome


def test_packages_open_libraries_as_they_like(backend: WorkerBackend):
    body = """
    import ctypes, ctypes.util, math, functools, dataclasses, typing, itertools, numpy, numpy.ctypeslib, triton.testing
    import sqlite3, uuid, torch.utils.cpp_extension
    torch.compiler, torch.linalg, ctypes.pythonapi.Py_IsInitialized()
    uuid.uuid4(), (ctypes.c_char * 4)()
    return right(x)
    """
    outcome = attempt(backend, source(body))
    assert (outcome.status, outcome.findings) == (RETURNED, ()), outcome


def test_thread_and_descriptor_floods_end_with_the_candidate(backend: WorkerBackend):
    body = """
    import threading, time
    try:
        while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    except RuntimeError: pass
    kept = []
    while True: kept.append(open('/dev/null'))
    """
    outcome = attempt(backend, source(body))
    assert outcome.status == RAISED
    assert "Too many open files" in outcome.message


# the channel


def test_closing_every_descriptor(backend: WorkerBackend):
    outcome = attempt(backend, source("import os\nos.closerange(0, 4096)\nreturn right(x)"))
    assert outcome.status == CRASHED
    assert "channel" in outcome.message or "exited by itself" in outcome.message


FRAME = (
    "import json, struct\ndef frame(text, payload=b''): return struct.pack('<I', len(text)) + text.encode() + payload"
)


@pytest.mark.parametrize(
    "data",
    [
        "b'garbage' * 10000",
        "b'\\xff' * 4",
        "frame('{')",
        "frame('[]')",
        "frame('1' * 100000)",
        "frame('[' * 100000)",
        "frame('{\"payload\": [-1]}')",
        "frame('{\"payload\": [99999999999]}')",
        "frame('{\"payload\": []}')",
        "frame(json.dumps({'kind': '', 'message': '', 'traceback': '', 'findings': 3, 'payload': []}))",
        "frame(json.dumps({'kind': 'pass', 'message': '', 'traceback': '', 'findings': [], 'payload': []}))",
        "frame(json.dumps({**GOOD, 'launches': -1}))",
        "frame(json.dumps({**GOOD, 'launches': True}))",
        "frame(json.dumps({**GOOD, 'seconds': -1.0}))",
        "frame(json.dumps({**GOOD, 'seconds': float('nan')}))",
        "frame(json.dumps({**GOOD, 'outputs': [{}], 'payload': [0]}))",
        "frame(json.dumps({**GOOD, 'outputs': [{**OUT, 'shape': [-1]}], 'payload': [0]}))",
        "frame(json.dumps({**GOOD, 'outputs': [{**OUT, 'shape': 7}], 'payload': [0]}))",
        "frame(json.dumps({**GOOD, 'outputs': [{**OUT, 'alias': 9}], 'payload': [0]}))",
        "frame(json.dumps({**GOOD, 'outputs': [OUT], 'payload': [3]}), b'abc')",
        "frame(json.dumps({**GOOD, 'outputs': [OUT, OUT], 'payload': [0]}))",
    ],
)
def test_nonsense_on_the_channel(backend: WorkerBackend, data: str):
    top = (
        FRAME
        + """
GOOD = dict(kind='', message='', traceback='', findings=[], structure='tensor', launches=1, configs=1, outputs=[])
GOOD['payload'], GOOD['seconds'] = [], 0.0
OUT = dict(dtype='float32', shape=[2], contiguous=True, device='cpu', alias=None)
"""
    )
    outcome = attempt(backend, source(f"import os\nos.write(3, {data})\nreturn right(x)", top))
    assert outcome.status == CRASHED, outcome
    assert kinds(outcome) == {"tampering"}, outcome


def test_output_flood_on_every_descriptor(backend: WorkerBackend):
    body = """
    import os
    for fd in (0, 1, 2):
        os.write(fd, bytes(1 << 20))
    print('x' * (1 << 20))
    return right(x)
    """
    assert np.array_equal(attempt(backend, source(body)).outputs[0].array(), INPUT * 2)


# exceptions


@pytest.mark.parametrize("method", ["while True: pass", "raise MemoryError", "return 3", "import os; os._exit(0)"])
def test_exceptions_with_hostile_texts(backend: WorkerBackend, method: str):
    text = (
        PRELUDE
        + f"""
class Bad(Exception):
    def __str__(self):
        {method}
    __repr__ = __str__

class Worse(KeyError):
    pass

def entry(x):
    raise Worse(Bad()) if x is None else Bad(Bad())
"""
    )
    outcome = attempt(backend, text, timeout=20.0)
    assert (outcome.status, outcome.error_kind, outcome.message) == (RAISED, "launch_error", "Bad: <Bad>")


# patched libraries


@pytest.mark.parametrize(
    "statement",
    [
        "torch.allclose = lambda *a, **k: True",
        "torch.Tensor.allclose = lambda *a, **k: True",
        "torch.empty = torch.zeros",
        "torch.allclose.__class__; torch.nn.functional.softmax.__code__ = right.__code__",
        "torch.cuda.synchronize = lambda *a: None",
        "import time; time.perf_counter = lambda: 0.0",
        "import builtins; builtins.abs = max",
        "triton.cdiv = max",
        "import oracle.worker.outputs as o; o.examine = None",
        "import oracle.worker.wire as w; w.write = w.pack",
    ],
)
@pytest.mark.parametrize("when", ["import", "call"])
def test_replaced_attributes_are_tampering(backend: WorkerBackend, statement: str, when: str):
    text = source("return right(x)", statement) if when == "import" else source(f"{statement}\nreturn x * 1")
    outcome = attempt(backend, text)
    assert "tampering" in kinds(outcome), outcome


def test_an_attribute_replaced_after_others_were_added_is_tampering(backend: WorkerBackend):
    top = "torch.mine = torch.Tensor.mine = 1\ncalls = []"
    body = "calls.append(1)\nif len(calls) == 3: torch.Tensor.allclose = lambda *a, **k: True\nreturn right(x)"
    assert kinds(attempt(backend, source(body, top), calls=2)) == set()
    assert kinds(attempt(backend, source(body, top), calls=3)) == {"tampering"}


def test_what_honest_code_does_is_no_tampering(backend: WorkerBackend):
    top = """
    import math, functools, typing, dataclasses, contextlib, os, sys, time, inspect, collections, warnings
    import numpy, torch.nn as nn, torch.nn.functional as F
    import torch.utils.benchmark, torch.utils.cpp_extension, torch._inductor, torch.fx, torch.nn.attention
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision('high')
    @dataclasses.dataclass
    class Config:
        block: int = 64
    @functools.lru_cache
    def block(n): return triton.next_power_of_2(n)
    """
    outcome = attempt(backend, source("print('hello')\nblock(x.numel())\nreturn right(x)", top), calls=2)
    assert outcome.status == RETURNED, outcome
    assert outcome.findings == ()


def test_a_mode_left_behind_does_not_see_the_judges_work(backend: WorkerBackend):
    top = """
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    class Lie(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return torch.zeros(3)
    class Sly(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise RuntimeError('seen')
    """
    body = "out = right(x)\nout.sum()\nLie().__enter__()\nSly().__enter__()\nreturn out[::2]"
    outcome = attempt(backend, source(body, top))
    if outcome.status == RETURNED:
        assert outcome.outputs == () or np.array_equal(outcome.outputs[0].array(), INPUT[::2] * 2), outcome


def test_atexit_and_del_do_not_run_on(backend: WorkerBackend):
    top = """
    import atexit, os
    class Late:
        def __del__(self):
            while True: pass
    late = Late()
    @atexit.register
    def loop():
        while True: pass
    """
    assert attempt(backend, source("return right(x)", top)).status == RETURNED
