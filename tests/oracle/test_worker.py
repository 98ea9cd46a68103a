"""A candidate's process: what goes in comes out, every end has its status, and the judge survives all of them."""

from __future__ import annotations

import threading
import time

import ml_dtypes
import numpy as np
import pytest

from oracle.backends import WorkerBackend, open_backend
from oracle.errors import UsageError
from oracle.worker.protocol import CRASHED, MEMORY, RAISED, RETURNED, TIMEOUT, Call, TensorBuffer
from tests.hostile.attempts import INPUT, PRELUDE, attempt, buffer, kinds, nothing_left, source


def test_right_kernel_returns_the_right_bytes_and_leaves_its_input_alone(backend: WorkerBackend):
    x = buffer(INPUT)
    session = backend.open(source("return right(x)"), "entry")
    outcome = session.call(Call((x,)), 30.0)
    session.close()
    assert outcome.status == RETURNED, outcome
    assert outcome.structure == "tensor"
    assert np.array_equal(outcome.outputs[0].array(), INPUT * 2)
    assert (outcome.outputs[0].contiguous, outcome.outputs[0].device, outcome.outputs[0].aliases) == (True, "cpu", None)
    assert outcome.launches == 1
    assert outcome.findings == ()
    assert not outcome.late
    assert np.array_equal(outcome.storages[0], x.storage)
    nothing_left(backend)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool"])
def test_every_dtype_and_layout_crosses_unchanged(backend: WorkerBackend, dtype: str):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    elements = (np.arange(64) % 2 if dtype == "bool" else np.arange(64)).astype(kind)
    x = TensorBuffer("x", dtype, (3, 4), (2, 9), 5, elements.view(np.uint8).copy())
    session = backend.open("def entry(x, *, n):\n    return x.clone(), x.t(), n and x", "entry")
    outcome = session.call(Call((x,), {"n": 1}), 30.0)
    session.close()
    assert outcome.structure == "tuple", outcome
    assert [raw.dtype for raw in outcome.outputs] == [dtype] * 3
    assert np.array_equal(outcome.outputs[0].array(), x.values())
    assert np.array_equal(outcome.outputs[1].array(), x.values().T)
    assert [raw.aliases for raw in outcome.outputs] == [None, "x", "x"]
    assert [raw.contiguous for raw in outcome.outputs] == [False, False, False]


def test_arguments_arrive_as_python_values(backend: WorkerBackend):
    text = """
import torch
def entry(x, a, *, b, dtype, flag, y):
    assert a == (1, (2.5, None)) and type(a) is tuple and b == "text" and dtype is torch.float16 and flag is True
    assert y.shape == (0, 3) and x.stride() == (1,)
"""
    empty = TensorBuffer("y", "float32", (0, 3), (3, 1), 0, np.empty(0, np.uint8))
    session = backend.open(text, "entry")
    keyword = {"b": "text", "dtype": "torch.float16", "flag": True, "y": empty}
    outcome = session.call(Call((buffer(INPUT), [1, [2.5, None]]), keyword), 30.0)
    session.close()
    assert (outcome.status, outcome.structure, outcome.outputs) == (RETURNED, "None", ()), outcome
    assert [storage.nbytes for storage in outcome.storages] == [INPUT.nbytes + 32, 0]


def test_calls_share_the_process_and_its_addresses(backend: WorkerBackend):
    text = source("seen.append(x.data_ptr())\nreturn x.new_tensor(seen, dtype=torch.int64)", "seen = []")
    session = backend.open(text, "entry")
    outcomes = [session.call(Call((buffer(INPUT + i),)), 30.0) for i in range(3)]
    session.close()
    seen = outcomes[-1].outputs[0].array()
    assert len(seen) == 3
    assert len(set(seen.tolist())) == 1


def test_writes_to_the_input_reach_the_judge(backend: WorkerBackend):
    outcome = attempt(backend, source("x[3] = -1.0\nreturn right(x)"))
    assert outcome.storages[0].view(np.float32)[4 + 3] == -1.0


@pytest.mark.parametrize(
    ("text", "status", "kind", "message"),
    [
        ("import no_such_package", RAISED, "import_error", "no_such_package"),
        ("def f(:", RAISED, "import_error", "SyntaxError"),
        ("1/0", RAISED, "import_error", "ZeroDivisionError"),
        ("x = 1", RAISED, "missing_entry_point", "entry"),
        ("entry = 3", RAISED, "missing_entry_point", "entry"),
        ("raise SystemExit(0)", CRASHED, "", "exited by itself"),
        ("import os; os._exit(0)", CRASHED, "", "exited by itself with status 0"),
        ("x = bytearray(1 << 40)", MEMORY, "", "MemoryError"),
    ],
)
def test_source_that_cannot_be_executed(backend: WorkerBackend, text: str, status: str, kind: str, message: str):
    outcome = attempt(backend, text, calls=2)
    assert (outcome.status, outcome.error_kind) == (status, kind), outcome
    assert message in outcome.message


@pytest.mark.parametrize(
    ("body", "status", "kind", "message"),
    [
        ("return right(x, 1)", RAISED, "launch_error", "TypeError"),
        ("raise KeyboardInterrupt", RAISED, "launch_error", "KeyboardInterrupt"),
        ("raise GeneratorExit", RAISED, "launch_error", "GeneratorExit"),
        ("import sys; sys.exit(0)", CRASHED, "", "exited by itself"),
        ("import os; os._exit(0)", CRASHED, "", "exited by itself with status 0"),
        ("import os; os._exit(7)", CRASHED, "", "status 7"),
        ("import ctypes; ctypes.string_at(0)", CRASHED, "", "SIGSEGV"),
        ("import os; os.abort()", CRASHED, "", "ended by SIG"),
        ("return torch.empty(1 << 40, device=x.device)", MEMORY, "", ""),
        ("keep = [0]\nwhile True: keep += keep", MEMORY, "", "MemoryError"),
        ("while True: pass", TIMEOUT, "", ""),
        ("import time; time.sleep(1000)", TIMEOUT, "", ""),
        (
            "import signal, os; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
            TIMEOUT,
            "",
            "",
        ),
    ],
)
def test_every_end_of_a_call_has_its_status(backend: WorkerBackend, body: str, status: str, kind: str, message: str):
    outcome = attempt(backend, source(body), timeout=1.5 if status == TIMEOUT else 30.0)
    assert (outcome.status, outcome.error_kind) == (status, kind), outcome
    assert message in outcome.message


def test_endless_loop_in_a_kernel_is_killed_from_outside(backend: WorkerBackend):
    text = (
        PRELUDE
        + """
@triton.jit
def _spin(x_ptr, out_ptr):
    i = 0
    while i >= 0:
        i = i * 1

def entry(x):
    _spin[(1,)](x, x)
    return x
"""
    )
    started = time.monotonic()
    assert attempt(backend, text, timeout=1.5).status == TIMEOUT
    assert time.monotonic() - started < 20


def test_after_a_dead_call_the_session_stays_dead(backend: WorkerBackend):
    session = backend.open(source("import os; os._exit(0)"), "entry")
    assert session.call(Call((buffer(INPUT),)), 30.0).status == CRASHED
    assert session.call(Call((buffer(INPUT),)), 30.0).status == CRASHED
    session.close()
    session.close()


def test_an_error_shows_the_candidates_own_lines_only(backend: WorkerBackend):
    text = (
        PRELUDE
        + """
def inner(x):
    return torch.cat([x, "no tensor"])

def entry(x):
    return inner(x)
"""
    )
    outcome = attempt(backend, text)
    assert outcome.error_kind == "launch_error"
    assert [line.split(", in ")[1] for line in outcome.traceback.splitlines()] == [
        "entry: return inner(x)",
        'inner: return torch.cat([x, "no tensor"])',
    ]
    assert "oracle" not in outcome.traceback


def test_a_line_inside_a_kernel_is_named(backend: WorkerBackend):
    text = (
        PRELUDE
        + """
@triton.jit
def _broken(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.no_such_function(x))

def entry(x):
    _broken[(1,)](x)
"""
    )
    outcome = attempt(backend, text)
    assert outcome.status == RAISED
    assert "no_such_function" in outcome.message
    assert "in _broken: tl.store(x_ptr, tl.no_such_function(x))" in outcome.traceback


@pytest.mark.parametrize(
    ("body", "structure"),
    [
        ("return None", "None"),
        ("return 3", "int"),
        ("return [x, x]", "list"),
        ("return x, None", "tuple of (Tensor, NoneType)"),
        ("return {'out': x}", "dict"),
        ("return x.to_sparse()", "a tensor of layout torch.sparse_coo"),
        ("class Lazy(torch.Tensor): pass\nreturn x.as_subclass(Lazy)", "Lazy"),
        ("return torch.nested.nested_tensor([x, x[:3]])", "a nested tensor"),
        ("return torch.quantize_per_tensor(x, 1.0, 0, torch.qint8)", "a quantized tensor"),
    ],
)
def test_what_is_no_plain_tensor_is_a_structure_of_its_own(backend: WorkerBackend, body: str, structure: str):
    outcome = attempt(backend, source(body))
    assert (outcome.status, outcome.structure, outcome.outputs) == (RETURNED, structure, ()), outcome


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return (x * 1).requires_grad_()", INPUT),
        ("return torch.nn.Parameter(x * 1)", INPUT),
        ("return (x * 1)[::2]", INPUT[::2]),
        ("return (x[:1] * 1).expand(3, 1)", np.zeros((3, 1), np.float32)),
        ("return torch._neg_view(x * 1)", -INPUT),
        ("return (x * 1).as_strided((2, 3), (1, 1))", np.array([[0, 1, 2], [1, 2, 3]], np.float32)),
        ("return (x * 1j).conj().imag.to(torch.float32)", -INPUT),
    ],
)
def test_odd_but_plain_tensors_arrive_as_their_values(backend: WorkerBackend, body: str, expected: np.ndarray):
    outcome = attempt(backend, source(body))
    assert np.array_equal(outcome.outputs[0].array(), expected), outcome


def test_too_large_and_unreal_outputs_carry_no_bytes(backend: WorkerBackend):
    outcome = attempt(backend, source("return x[:1].expand(1 << 40), torch.empty(3, device='meta')"))
    huge, unreal = outcome.outputs
    assert (huge.shape, huge.data) == ((1 << 40,), b"")
    assert (unreal.device, unreal.data) == ("meta", b"")


def test_a_result_left_on_the_host_is_told_apart(backend: WorkerBackend):
    assert attempt(backend, source("return right(x).cpu()")).outputs[0].device == "host"


def test_threads_that_still_write_show_as_late(backend: WorkerBackend):
    body = """
    import threading, time
    out = right(x)
    def later():
        while True:
            out.add_(1); time.sleep(0.001)
    threading.Thread(target=later, daemon=True).start()
    return out
    """
    assert attempt(backend, source(body)).late
    assert not attempt(backend, source(body.replace("out.add_(1)", "pass"))).late


def test_settings_of_the_interpreter_reach_the_kernel(backend: WorkerBackend):
    text = (
        PRELUDE
        + """
@triton.jit
def _last(out_ptr):
    tl.store(out_ptr, tl.program_id(0).to(tl.float32))

def entry(x):
    out = torch.empty_like(x)
    _last[(3,)](out)
    return out
"""
    )
    session = backend.open(text, "entry")
    calls = [Call((buffer(INPUT),)), Call((buffer(INPUT),), reverse=True, poison=1)]
    forward, backward = (session.call(call, 30.0) for call in calls)
    session.close()
    assert (forward.outputs[0].array()[0], backward.outputs[0].array()[0]) == (2.0, 0.0)
    assert np.isnan(forward.outputs[0].array()[1:]).all()
    assert np.isfinite(backward.outputs[0].array()[1:]).all()


def test_out_of_bounds_is_found_before_memory_is_touched(backend: WorkerBackend):
    text = source("_kernel[(2,)](x, x, 128, BLOCK=64)\nreturn x")
    outcome = attempt(backend, text)
    assert "out_of_bounds" in kinds(outcome)


def test_sessions_run_side_by_side(backend: WorkerBackend):
    results: dict[int, np.ndarray] = {}

    def judge(index: int) -> None:
        session = backend.open(source(f"return right(x) + {index}"), "entry")
        for _ in range(3):
            results[index] = session.call(Call((buffer(INPUT),)), 60.0).outputs[0].array()
        session.close()

    threads = [threading.Thread(target=judge, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[index], INPUT * 2 + index) for index in range(6))
    nothing_left(backend)


def test_no_backend_without_blocking_of_files_and_network():
    with pytest.raises(UsageError, match="--allow-unsafe"):
        open_backend("interpreter", without=["landlock"])
    with pytest.raises(UsageError, match="network access is not blocked"):
        open_backend("interpreter", without=["seccomp", "network_namespace"])
    with pytest.raises(UsageError, match="auto, interpreter, cuda"):
        open_backend("quantum")


def test_temporary_files_go_to_the_private_folder_even_where_the_warm_parent_made_some(backend: WorkerBackend):
    """Triton's compiler writes temporary files; Python remembers the first folder that it was told."""
    body = "import os, tempfile\ndef entry():\n    raise ValueError(tempfile.gettempdir() == os.environ['TMPDIR'])"
    session = backend.open(body, "entry")
    outcome = session.call(Call(()), 30.0)
    session.close()
    assert outcome.message == "ValueError: True"


def test_a_candidates_words_are_fit_for_a_terminal(backend: WorkerBackend):
    session = backend.open(source(r'raise ValueError("red \x1b[31m half \ud800 turned \u202e ünï")'), "entry")
    outcome = session.call(Call((buffer(INPUT),)), 30.0)
    session.close()
    assert outcome.message == "ValueError: red �[31m half � turned � ünï"
    assert all(character.isprintable() or character == "\n" for character in outcome.message + outcome.traceback)
