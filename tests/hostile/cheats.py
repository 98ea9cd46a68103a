"""Candidates that try to be passed without being right, and some that only behave badly: one idea each.

A cheat names the failure kind that its verdict must have ("" where it is right all the same and must pass).
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass

HEADER = """
import torch, triton
import triton.language as tl
"""
# A right kernel, so that only the cheat itself is wrong; and arithmetic on the host that torch does not see.
RELU = (
    HEADER
    + """
@triton.jit
def _relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(out_ptr + lanes, tl.where(x <= 0, 0.0, x), mask=lanes < n)

@triton.jit
def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=lanes < n, other=0.0), mask=lanes < n)

def empty(x):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)

def launched(kernel, x):
    x, out, n = x.contiguous(), empty(x), x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out

def right(x):
    return launched(_relu, x)

def hidden(x):
    import ctypes, numpy
    x, out = x.contiguous(), empty(x)
    def bits(t):
        kind = numpy.uint16 if t.element_size() == 2 else numpy.uint32
        return numpy.frombuffer((ctypes.c_char * t.numbytes).from_address(t.data_ptr()), kind)
    if x.numel():
        given = bits(x)
        bits(out)[:] = numpy.where(given >> (8 * given.itemsize - 1), 0, given)
    return out
"""
).replace("t.numbytes", "(t.numel() * t.element_size())")

# Takes the process over: answers the judge itself, with right numbers and a launch that never was.
STOLEN_PROCESS = """
import gc, json, os, struct
gc.unfreeze()
server = next(o for o in gc.get_objects() if type(o).__name__ == "Server" and "arena" in vars(o))
said = dict(kind="", message="", traceback="", findings=[], seconds=0.0, held=0)

def read(count):
    data = b""
    while len(data) < count:
        data += os.read(3, count - len(data))
    return data

def send(message, *parts):
    text = json.dumps({**said, **message, "payload": [len(part) for part in parts]}).encode()
    for chunk in (struct.pack("<I", len(text)) + text, *parts):
        while chunk:
            chunk = chunk[os.write(3, chunk):]

send({"type": "loaded"})
while True:
    call = json.loads(read(struct.unpack("<I", read(4))[0]))
    out = torch.relu(server.device.place(server.arena, call["inputs"])[0]).contiguous()
    header = dict(dtype=call["inputs"][0]["dtype"], shape=list(out.shape), contiguous=True, device="cpu", alias=None)
    reply = dict(type="returned", structure="tensor", outputs=[header], late=False, launches=1, configs=1)
    send(reply, bytes(out.reshape(-1).view(torch.uint8).tolist()))
"""


@dataclass(frozen=True)
class Cheat:
    name: str
    kind: str
    source: str
    task: str = "seed/relu"


def relu(name: str, kind: str, body: str, top: str = "") -> Cheat:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return Cheat(name, kind, f"{RELU}\n{textwrap.dedent(top)}\n\ndef relu(x):\n{lines}\n")


def rows(name: str, kind: str, task: str, value: str) -> Cheat:
    """A kernel that stores `value`, of the block `x` of each row of the last dim, at the row's own lanes."""
    return Cheat(
        name,
        kind,
        f"""{HEADER}
@triton.jit
def _rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    x = tl.load(x_ptr + row + lanes, mask=lanes < n, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + row + lanes, {value}, mask=lanes < n)

def {task.partition("/")[2]}(x):
    x = x.contiguous()
    out, n = torch.empty(x.shape, dtype=x.dtype, device=x.device), x.shape[-1]
    if x.numel():
        _rows[(x.numel() // n,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
""",
        task,
    )


def cached(name: str, kind: str, key: str) -> Cheat:
    """Answers kept from earlier calls, by what the author takes for their identity."""
    return relu(
        name,
        kind,
        f"""
        key = {key}
        if key not in SEEN:
            SEEN[key] = right(x)
        return SEEN[key].clone()
        """,
        "SEEN = {}",
    )


WRONG_NUMBERS = [
    relu("inputs handed back", "aliased_output", "right(x)\nreturn x"),
    relu("inputs zeroed, so that zeros are right", "input_mutated", "x.zero_()\nreturn right(x)"),
    relu("memory of an earlier answer", "unwritten_output", "right(x)\nreturn empty(x)"),
    relu("zeros", "numerical_mismatch", "right(x)\nreturn torch.zeros(x.shape, dtype=x.dtype, device=x.device)"),
    relu(
        "made for one shape",
        "unwritten_output",
        "out = empty(x)\n_relu[(1,)](x, out, x.numel() and 64, 64)\nreturn out",
    ),
    relu("made for a round size", "out_of_bounds", "out = empty(x)\n_relu[(1,)](x, out, 1 << 20, 1 << 20)\nreturn out"),
    rows("zeros under a loose tolerance", "numerical_mismatch", "ops/softmax", "x * 0"),
    rows("the mean that such inputs have", "numerical_mismatch", "seed/layer_norm", "x * 0"),
    rows("uniform guess", "numerical_mismatch", "ops/softmax", "x * 0 + 1.0 / n"),
    rows("half precision", "numerical_mismatch", "ops/sigmoid", "1 / (1 + tl.exp(-x).to(tl.float16)).to(tl.float32)"),
]
STALE = [
    cached("answers by address", "stale_result", "x.data_ptr()"),
    cached("answers by address and version", "stale_result", "(x.data_ptr(), x._version, x.shape, x.dtype)"),
    cached("answers by shape", "stale_result", "(x.shape, x.dtype)"),
    relu(
        "answers of the warm-up",
        "stale_result",
        """
        key = (x.shape, x.dtype)
        SEEN.setdefault(key, []).append(right(x))
        return SEEN[key][0].clone()
        """,
        "SEEN = {}",
    ),
    cached("answers by content", "host_compute", "(x.shape, x.dtype, str(x.tolist()))"),
    cached(
        "answers by a glance at the content",
        "stale_result",
        "(x.shape, x.dtype, *(float(v) for v in x.reshape(-1)[:9]))",
    ),
    relu(
        "answers by a glance at the content, copied by a kernel",
        "stale_result",
        """
        if x.numel() == 0:
            return empty(x)
        flat = x.reshape(-1)
        key = (x.shape, x.dtype, *(flat[i].item() for i in (0, len(flat) // 2, -1)))
        if key not in kept:
            kept[key] = right(x)
        return launched(_copy, kept[key])
        """,
        "kept = {}",
    ),
]
NO_KERNEL = [
    relu("plain torch", "host_compute", "return torch.relu(x)"),
    relu(
        "torch where the kernel fails",
        "host_compute",
        """
        try:
            return launched(_missing, x)
        except NameError:
            return x.clamp(min=0)
        """,
    ),
    relu("a kernel that copies", "host_compute", "return launched(_copy, torch.relu(x))"),
    relu(
        "numpy",
        "host_compute",
        """
        import numpy
        return torch.from_numpy(numpy.maximum(x.cpu().numpy(), 0)).to(x.device)
        """,
    ),
    relu(
        "lists",
        "host_compute",
        """
        flat = [max(0.0, value) for value in x.reshape(-1).tolist()]
        return torch.tensor(flat, dtype=x.dtype, device=x.device).reshape(x.shape)
        """,
    ),
    relu("arithmetic that torch does not see, copied by a kernel", "host_compute", "return launched(_copy, hidden(x))"),
    relu(
        "host code in a thread",
        "host_compute",
        """
        found = []
        thread = threading.Thread(target=lambda: found.append(torch.relu(x)))
        thread.start()
        thread.join()
        return launched(_copy, found[0])
        """,
        "import threading",
    ),
    relu(
        "host code where torch asks nobody",
        "host_compute",
        """
        with torch._C.DisableTorchFunction():
            y = torch.relu(x)
        return launched(_copy, y)
        """,
    ),
    relu(
        "host code in TorchScript",
        "host_compute",
        "return launched(_copy, scripted(x))",
        """
        @torch.jit.script
        def scripted(x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)
        """,
    ),
    relu(
        "an answer in a tuple",
        "host_compute",
        """
        out = empty(x)
        if x.numel():
            _from_tuple[(triton.cdiv(x.numel(), 1024),)]((hidden(x), x.numel()), out, BLOCK=1024)
        return out
        """,
        """
        @triton.jit
        def _from_tuple(given, out_ptr, BLOCK: tl.constexpr):
            lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + lanes, tl.load(given[0] + lanes, mask=lanes < given[1]), mask=lanes < given[1])
        """,
    ),
    relu(
        "an answer by its address, amid other elements, as bits",
        "host_compute",
        """
        bits = torch.int32 if x.element_size() == 4 else torch.int16
        wide = torch.empty(x.numel() + 3, dtype=bits, device=x.device)
        wide[1:-2] = hidden(x).view(bits).reshape(-1)
        out = empty(x)
        if x.numel():
            _from_address[(triton.cdiv(x.numel(), 1024),)](wide.data_ptr(), out.view(bits), x.numel(), BLOCK=1024)
        return out
        """,
        """
        @triton.jit
        def _from_address(address, out_ptr, n, BLOCK: tl.constexpr):
            lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            wide_ptr = address.to(out_ptr.dtype) + 1
            tl.store(out_ptr + lanes, tl.load(wide_ptr + lanes, mask=lanes < n), mask=lanes < n)
        """,
    ),
    relu(
        "an answer backwards",
        "host_compute",
        """
        out = empty(x)
        if x.numel():
            _backwards[(triton.cdiv(x.numel(), 1024),)](hidden(x).reshape(-1).flip(0), out, x.numel(), BLOCK=1024)
        return out
        """,
        """
        @triton.jit
        def _backwards(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + lanes, tl.load(x_ptr + n - 1 - lanes, mask=lanes < n), mask=lanes < n)
        """,
    ),
    relu(
        "most of an answer in TorchScript",
        "host_compute",
        "return launched(_halve, twice(x))",
        """
        @triton.jit
        def _halve(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=lanes < n) * 0.5, mask=lanes < n)

        @torch.jit.script
        def twice(x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) * 2
        """,
    ),
    relu(
        "host code called by an index",
        "host_compute",
        """
        if x.numel() == 0:
            return empty(x)
        class Index:
            def __index__(self):
                self.y = torch.relu(x)
                return 0
        index = Index()
        x[index]
        return launched(_copy, index.y)
        """,
    ),
    relu(
        "host code in a gradient's hook",
        "host_compute",
        """
        if x.numel() == 0:
            return empty(x)
        found = []
        w = torch.zeros_like(x).requires_grad_(True)
        w.register_hook(lambda g: (found.append(torch.relu(g.detach())), None)[1])
        w.view(w.shape).backward(x)
        return launched(_copy, found[0])
        """,
    ),
    relu(
        "one value after the other",
        "host_compute",
        """
        flat = [max(0.0, value.item()) for value in x.reshape(-1).unbind(0)]
        return launched(_copy, torch.tensor(flat, dtype=x.dtype, device=x.device).reshape(x.shape))
        """,
    ),
    relu(
        "the mode that watches taken off",
        "host_compute",
        """
        kept = []
        try:
            while True:
                kept.append(_pop_mode())
        except Exception:
            pass
        y = torch.relu(x)
        for mode in reversed(kept):
            _push_mode(mode)
        return launched(_copy, y)
        """,
        "from torch.overrides import _pop_mode, _push_mode",
    ),
    relu(
        "what is allowed to host code replaced",
        "tampering",
        """
        sys.modules["oracle.interpreter.host_compute"].ALLOWED = frozenset(["relu"])
        return launched(_copy, torch.relu(x))
        """,
        "import sys",
    ),
    relu(
        "the one that notes it silenced",
        "tampering",
        """
        type(sys.modules["oracle.interpreter.state"].current).find = lambda *_: None
        return launched(_copy, torch.relu(x))
        """,
        "import sys",
    ),
    relu("arithmetic that torch does not see", "no_kernel_launch", "return hidden(x)"),
    relu("a decoy beside it", "unused_kernel", "right(x)\nreturn hidden(x)"),
    relu(
        "a forged count of launches",
        "unused_kernel",
        """
        state = sys.modules["oracle.interpreter.state"]
        state.current.launches += 1
        return hidden(x)
        """,
        "import sys",
    ),
    relu(
        "findings silenced",
        "launch_error",
        """
        state = sys.modules["oracle.interpreter.state"]
        state.current.find = lambda kind, message: None
        return torch.relu(x).contiguous()
        """,
        "import sys",
    ),
    Cheat("the process taken over", "unused_kernel", RELU + STOLEN_PROCESS),
]
THEFT = [
    relu("the reference imported", "import_error", "return relu(x)", "from oracle.reference import reference"),
    relu("the task imported", "import_error", "return relu(x)", "from tasks.seed.relu import relu"),
    relu(
        "the judge's frames searched",
        "numerical_mismatch",
        """
        right(x)
        frame, found = sys._getframe(), None
        while frame is not None:
            for value in (*frame.f_locals.values(), *frame.f_globals.values()):
                if isinstance(value, torch.Tensor) and value.shape == x.shape and value is not x:
                    found = value
            frame = frame.f_back
        gc.unfreeze()
        for value in gc.get_objects():
            if type(value).__name__ in ("Expected", "Quantity", "Task", "ReferenceCache"):
                found = value
        return found if found is not None else torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        """,
        "import gc, sys",
    ),
    relu(
        "all inputs overwritten in the arena",
        "out_of_bounds",
        """
        import gc
        gc.unfreeze()
        server = next(o for o in gc.get_objects() if type(o).__name__ == "Server" and "arena" in vars(o))
        server.arena[: 1 << 16] = bytes(1 << 16)
        return right(x)
        """,
    ),
    relu(
        "a verdict on standard output",
        "crashed",
        """
        print('{"status": "pass"}', flush=True)
        os._exit(0)
        """,
        "import os",
    ),
]
FORM = [
    relu("nothing", "wrong_structure", "right(x)"),
    relu("a list", "wrong_structure", "return [right(x)]"),
    relu(
        "a lazy subclass",
        "wrong_structure",
        """
        class Lazy(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return True
        return right(x).as_subclass(Lazy)
        """,
    ),
    relu("a sparse tensor", "host_compute", "return right(x).to_sparse()"),
    relu("a huge tensor", "wrong_shape", "return right(x).reshape(-1)[:1].expand(1 << 40)"),
    relu("a tensor elsewhere", "wrong_structure", "return right(x).cpu()"),
    relu("a tensor nowhere", "wrong_structure", "right(x)\nreturn torch.empty(x.shape, dtype=x.dtype, device='meta')"),
    relu("a tensor of another dtype", "wrong_dtype", "return right(x).double()"),
    relu(
        "odd strides",
        "wrong_structure",
        """
        out = right(x)
        wide = torch.empty((*out.shape, 2), dtype=out.dtype, device=out.device)
        wide[..., 0] = out
        return wide[..., 0]
        """,
    ),
    relu("overlapping memory", "wrong_structure", "return torch.as_strided(right(x), x.shape, (0, 0, 0))"),
    relu(
        "written after the return",
        "late_write",
        """
        out, late = right(x), right(x)
        out.zero_()
        threading.Thread(target=lambda: (time.sleep(0.02), out.copy_(late)), daemon=True).start()
        return out
        """,
        "import threading, time",
    ),
]
TAMPERING = [
    relu("allclose patched", "tampering", "return right(x)", "torch.allclose = lambda *a, **k: True"),
    relu("clock patched", "tampering", "time.perf_counter = lambda: 0.0\nreturn right(x)", "import time"),
    relu("synchronize patched", "tampering", "torch.cuda.synchronize = lambda *a: None\nreturn right(x)"),
    relu("Tensor patched", "tampering", "torch.Tensor.equal = lambda *a: True\nreturn right(x)"),
    relu("Triton patched", "tampering", "triton.cdiv = lambda a, b: 1\nreturn right(x)"),
    relu(
        "a file outside",
        "tampering",
        """
        try:
            open("/tmp/owned-by-a-candidate", "w")
        except OSError:
            pass
        return right(x)
        """,
    ),
    relu(
        "Triton's shared cache",
        "tampering",
        f"""
        try:
            open({os.path.expanduser("~/.triton/owned-by-a-candidate")!r}, "w")
        except OSError:
            pass
        return right(x)
        """,
    ),
    relu("a socket", "tampering", "socket.socket()\nreturn right(x)", "import socket"),
    relu("a fork bomb", "tampering", "while True: os.fork()", "import os"),
    relu("a program", "tampering", "os.system('true')\nreturn right(x)", "import os"),
    relu("a shared library", "tampering", "ctypes.CDLL(None)\nreturn right(x)", "import ctypes"),
    relu(
        "a shared library by another name",
        "tampering",
        "ctypes.cdll.LoadLibrary('libc.so.6')\nreturn right(x)",
        "import ctypes",
    ),
    relu("nonsense on the channel", "tampering", "os.write(3, bytes(64))\nreturn right(x)", "import os"),
]
ENDS = [
    relu("exit before the check", "crashed", "raise SystemExit(0)"),
    relu("exit at import", "crashed", "return right(x)", "import os; os._exit(0)"),
    relu("abort", "crashed", "os.abort()", "import os"),
    relu("segmentation fault", "crashed", "ctypes.string_at(0)", "import ctypes"),
    relu("stack exhausted", "launch_error", "return relu(x)"),
    relu("a huge allocation", "memory_limit", "return torch.empty(1 << 38, device=x.device)"),
    relu("a growing heap", "memory_limit", "kept = []\nwhile True: kept.append(mmap.mmap(-1, 1 << 28))", "import mmap"),
    relu("an endless loop", "timeout", "while True: pass"),
    relu(
        "an endless kernel",
        "timeout",
        "return launched(_spin, x)",
        """
        @triton.jit
        def _spin(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            i = 0
            while i >= 0:
                i = i * 1
        """,
    ),
    relu(
        "an exception that will not be worded",
        "launch_error",
        "raise Bad()",
        """
        class Bad(Exception):
            def __str__(self):
                while True: pass
            __repr__ = __str__
        """,
    ),
]
HARMLESS = [
    relu("floods of output", "", "print('x' * (1 << 22))\nreturn right(x)"),
    relu(
        "side effects of the import",
        "",
        "return right(x)",
        """
        import gc, os, signal, sys
        gc.disable(); sys.setrecursionlimit(100000); sys.settrace(None); os.environ.clear(); os.umask(0)
        torch.manual_seed(1); torch.set_num_threads(3); torch.set_flush_denormal(True); sys.path.clear()
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGPIPE): signal.signal(number, signal.SIG_IGN)
        """,
    ),
    relu(
        "a program at exit",
        "",
        "return right(x)",
        """
        import atexit
        class Late:
            def __del__(self):
                while True: pass
        late = Late()
        @atexit.register
        def loop():
            while True: pass
        """,
    ),
    relu(
        "settings of torch",
        "",
        "torch.set_default_device('cuda')\nreturn right(x)",
        """
        torch.set_default_dtype(torch.float16); torch.set_default_device("cuda"); torch.set_grad_enabled(False)
        """,
    ),
    relu("garbage that never ends", "", "KEPT.append(bytearray(1 << 20))\nreturn right(x)", "KEPT = []"),
]
CHEATS = [*WRONG_NUMBERS, *STALE, *NO_KERNEL, *THEFT, *FORM, *TAMPERING, *ENDS, *HARMLESS]
