"""Work on other streams, in graphs and in threads that the caller never waits for, beside every way of waiting."""

from __future__ import annotations

from tests.oracle.attacks.common import Attack, candidate

LATE = ("late_write",)
# where the result is also seen unfinished
ANY = ("late_write", "numerical_mismatch", "nonfinite_mismatch", "unwritten_output", "no_kernel_launch")

SIDE = """
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    out = right(x)
"""

GRAPHS = """
_graphs = {}

def captured(x):
    static = x.contiguous().clone()
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(2):
            right(static)
    torch.cuda.current_stream().wait_stream(s)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = right(static)
    return graph, static, out

def known(x):
    key = (tuple(x.shape), x.dtype)
    if key not in _graphs:
        _graphs[key] = captured(x)
    return _graphs[key]
"""

# Some of a process's streams share a hardware queue with the default one (CUDA_DEVICE_MAX_CONNECTIONS).
KEPT = """
_STREAMS = [torch.cuda.Stream() for _ in range(4)]
"""


def kept(index: int) -> str:
    """Launched on the same stream in every call."""
    body = f"s = _STREAMS[{index}]\ns.wait_stream(torch.cuda.current_stream())\n"
    return candidate(f"{body}with torch.cuda.stream(s):\n    out = right(x)\nreturn out", KEPT)


def side(after: str = "", before: str = "") -> str:
    """Launched on a side stream; `after` is done before the return."""
    return candidate(f"{SIDE}{after}\nreturn out", before)


ATTACKS: dict[str, Attack] = {
    "stream_plain": Attack(side(), LATE),
    "stream_event_unwaited": Attack(side("e = torch.cuda.Event()\ne.record(s)"), LATE),
    "stream_another_waited": Attack(side("torch.cuda.current_stream().wait_stream(torch.cuda.Stream())"), LATE),
    **{f"stream_kept_{index}": Attack(kept(index), LATE) for index in range(4)},
    "stream_external": Attack(
        candidate(
            """
raw = torch.cuda.Stream()
s = torch.cuda.ExternalStream(raw.cuda_stream)
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    out = right(x)
return out
"""
        ),
        LATE,
    ),
    "stream_torch_copy": Attack(
        candidate(
            """
made, out = right(x), torch.empty(x.shape, dtype=x.dtype, device=x.device)
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    out.copy_(made)
return out
"""
        ),
        LATE,
    ),
    "stream_wait_before_launch": Attack(
        candidate(
            """
s = torch.cuda.Stream()
torch.cuda.current_stream().wait_stream(s)
with torch.cuda.stream(s):
    out = right(x)
return out
"""
        ),
        LATE,
    ),
    "stream_second_unwaited": Attack(
        side("torch.cuda.current_stream().wait_stream(s)\nwith torch.cuda.stream(s):\n    out = right(x)"), LATE
    ),
    "stream_many_waited_but_the_last": Attack(
        side("for _ in range(30):\n    s.synchronize()\n    with torch.cuda.stream(s):\n        out = right(x)"), LATE
    ),
    "stream_handle": Attack(
        candidate(
            """
x = x.contiguous()
out = torch.empty_like(x)
if out.numel():
    kernel = _relu.warmup(x, out, x.numel(), BLOCK=256, grid=(1,))
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    kernel[(triton.cdiv(x.numel(), 256), 1, 1)](x, out, x.numel(), 256, stream=s.cuda_stream)
return out
"""
        ),
        LATE,
    ),
    "graph_replay_side": Attack(
        candidate(
            """
if not x.numel():
    return right(x)
graph, static, out = known(x)
static.copy_(x)
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    graph.replay()
return out
""",
            GRAPHS,
        ),
        ("late_write", "stale_result"),
    ),
    "late_thread": Attack(
        candidate(
            """
x = x.contiguous()
out = torch.empty_like(x)
threading.Thread(target=lambda: (time.sleep(0.05), launch(x, out)), daemon=True).start()
return out
""",
            "import threading, time",
        ),
        ANY,
    ),
    "right_wait_stream": Attack(side("torch.cuda.current_stream().wait_stream(s)")),
    "right_event": Attack(side("e = torch.cuda.Event()\ne.record(s)\ntorch.cuda.current_stream().wait_event(e)")),
    "right_event_wait_method": Attack(side("s.record_event().wait()")),
    "right_event_synchronize": Attack(side("s.record_event().synchronize()")),
    "right_synchronize": Attack(side("torch.cuda.synchronize()")),
    "right_stream_synchronize": Attack(side("s.synchronize()")),
    "right_stream_query": Attack(side("while not s.query():\n    pass")),
    "right_event_query": Attack(side("e = s.record_event()\nwhile not e.query():\n    pass")),
    "right_accelerator_sync": Attack(side("torch.accelerator.synchronize()")),
    "right_accelerator_stream": Attack(side("torch.accelerator.current_stream().wait_stream(s)")),
    "right_accelerator_set_stream": Attack(
        candidate(
            """
main, s = torch.accelerator.current_stream(), torch.Stream("cuda")
s.wait_stream(main)
torch.accelerator.set_stream(s)
out = right(x)
torch.accelerator.set_stream(main)
main.wait_stream(s)
return out
"""
        )
    ),
    "right_generic_event": Attack(
        side('e = torch.Event("cuda")\ne.record(s)\ne.wait(torch.accelerator.current_stream())')
    ),
    "right_record_stream": Attack(
        side("torch.cuda.current_stream().wait_stream(s)\nout.record_stream(torch.cuda.current_stream())")
    ),
    "right_two_streams": Attack(
        candidate(
            """
x = x.contiguous()
out, half = torch.empty_like(x), x.numel() // 2
main = torch.cuda.current_stream()
sides = torch.cuda.Stream(), torch.cuda.Stream()
parts = (slice(0, half), slice(half, None))
for s, part in zip(sides, parts):
    s.wait_stream(main)
    with torch.cuda.stream(s):
        launch(x.view(-1)[part], out.view(-1)[part])
for s in sides:
    main.wait_stream(s)
return out
"""
        )
    ),
    "right_side_waits_for_side": Attack(
        candidate(
            """
main, s, t = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
s.wait_stream(main)
with torch.cuda.stream(s):
    out = right(x)
t.wait_stream(s)
with torch.cuda.stream(t):
    out = out.clone()
main.wait_stream(t)
return out
"""
        )
    ),
    "right_many_launches": Attack(
        side(
            "for _ in range(200):\n    with torch.cuda.stream(s):\n        out = right(x)\n"
            "torch.cuda.current_stream().wait_stream(s)"
        )
    ),
    "right_workspace_cleared_behind": Attack(
        side(
            "torch.cuda.current_stream().wait_stream(s)\nwith torch.cuda.stream(s):\n    _WORK.append(out.new_zeros(64))",
            "_WORK = []",
        )
    ),
    "right_thread_joined": Attack(
        candidate(
            """
found = []
thread = threading.Thread(target=lambda: found.append(right(x)))
thread.start()
thread.join()
return found[0]
""",
            "import threading",
        )
    ),
    "right_graph_first_eager": Attack(
        candidate(
            """
key = (tuple(x.shape), x.dtype)
if not x.numel():
    return right(x)
if key not in _graphs:
    _graphs[key] = None
    return right(x)
graph, static, out = _graphs[key] = _graphs[key] or captured(x)
static.copy_(x)
graph.replay()
return out.clone()
""",
            GRAPHS,
        )
    ),
    "right_graph_plain": Attack(
        candidate(
            """
if not x.numel():
    return right(x)
graph, static, out = known(x)
static.copy_(x)
graph.replay()
return out.clone()
""",
            GRAPHS,
        )
    ),
    "right_graph_replay_waited": Attack(
        candidate(
            """
if not x.numel():
    return right(x)
graph, static, out = known(x)
static.copy_(x)
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    graph.replay()
torch.cuda.current_stream().wait_stream(s)
return out.clone()
""",
            GRAPHS,
        )
    ),
    "right_warmup_handle": Attack(
        candidate(
            """
x = x.contiguous()
out = torch.empty_like(x)
if out.numel():
    kernel = _relu.warmup(x, out, x.numel(), BLOCK=256, grid=(1,))
    kernel[(triton.cdiv(x.numel(), 256), 1, 1)](x, out, x.numel(), 256)
return out
"""
        )
    ),
    "right_returned_handle": Attack(
        candidate(
            """
x = x.contiguous()
out = torch.empty_like(x)
if out.numel():
    grid = (triton.cdiv(x.numel(), 256), 1, 1)
    kernel = _relu[grid](x, torch.empty_like(x), x.numel(), BLOCK=256)
    kernel[grid](x, out, x.numel(), 256)
return out
"""
        )
    ),
    "right_current_stream_context": Attack(
        candidate("with torch.cuda.stream(torch.cuda.current_stream()):\n    out = right(x)\nreturn out")
    ),
}
