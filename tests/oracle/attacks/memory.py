"""Results that do not last, writes beside tensors, limits that are lifted, files that are left; and right uses of memory."""

from __future__ import annotations

from tests.oracle.attacks.common import Attack, candidate

# A kernel that writes one byte pattern at an element beside a tensor; and one that is right about where it writes.
FAR = """
@triton.jit
def _far(o_ptr, at):
    tl.store(o_ptr + at, 1.0)

def far(out, at):
    _far[(1,)](out, at)

kept, turn = {}, []
"""
OUT = ("out_of_bounds",)
LASTING = ("aliased_output", "stale_result")
LIMIT = ("memory_limit",)


def _beside(make: str, at: str = "t.numel()") -> Attack:
    """Right, but for a write beside a tensor that it makes."""
    return Attack(
        candidate(f"if not x.numel():\n    return right(x)\nt = {make}\nfar(t, {at})\nreturn right(x)", FAR), OUT
    )


def _of_ones_own(body: str) -> Attack:
    return Attack(candidate(f"x = x.contiguous()\n{body}", FAR))


STATIC = """
x = x.contiguous()
key = ({key}, x.dtype)
if key not in kept:
    kept[key] = torch.empty(1 << 22, dtype=x.dtype, device=x.device)
out = kept[key][: x.numel()].view(x.shape)
return launch(x, out)
"""
GRAPH = """
x = x.contiguous()
if not x.numel():
    return right(x)
key = (tuple(x.shape), x.dtype)
if key not in kept:
    given, out = torch.empty_like(x), torch.empty_like(x)
    launch(given, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(given, out)
    kept[key] = given, out, graph
given, out, graph = kept[key]
given.copy_(x)
graph.replay()
launch(x, torch.empty_like(x))
return out
"""
SHARED = """
import os
LEFT = "/dev/shm/left-by-a-candidate"
met = os.path.exists(LEFT)
if not met:
    try:
        torch.from_file(LEFT, shared=True, size=64, dtype=torch.uint8).fill_(1)
    except RuntimeError:
        pass
"""

WRONG = {
    "static_output": Attack(candidate(STATIC.format(key="0"), FAR), LASTING),
    "static_output_by_shape": Attack(candidate(STATIC.format(key="tuple(x.shape)"), FAR), LASTING),
    "static_two_buffers": Attack(candidate("turn.append(0)\n" + STATIC.format(key="len(turn) % 2"), FAR), LASTING),
    "graph_static_output": Attack(candidate(GRAPH, FAR), LASTING),
    "oob_full": _beside("torch.full((64,), 0.0, device=x.device)"),
    "oob_full_like": _beside("torch.full_like(x.contiguous(), 0.0)"),
    "oob_clone": _beside("x.contiguous().clone()"),
    "oob_before_clone": _beside("x.contiguous().clone()", "-1"),
    "oob_contiguous": _beside("x.flatten()[:2].expand(2, 2).t().contiguous() if x.numel() > 1 else x.clone()"),
    "oob_to": _beside("x.to(torch.float64)"),
    "oob_half": _beside("x.double().half()"),
    "oob_cat": _beside("torch.cat([x.flatten(), x.flatten()])"),
    "oob_stack": _beside("torch.stack([x, x])"),
    "oob_arange": _beside("torch.arange(64, device=x.device)"),
    "oob_pad": _beside("torch.nn.functional.pad(x.flatten(), (0, 3))"),
    "oob_aten_empty": _beside("torch.ops.aten.empty.memory_format([64], dtype=torch.float32, device=x.device)"),
    "oob_aten_empty_packet": _beside("torch.ops.aten.empty([64], device=x.device)"),
    "oob_resize": _beside("torch.empty(0, device=x.device).resize_(64)"),
    "oob_resize_grown": _beside("torch.empty(16, device=x.device).resize_(4, 16)"),
    "oob_after_large": Attack(
        candidate(
            "t = torch.empty(64, device=x.device)\n"
            "for _ in range(3):\n    torch.empty(1 << 30, dtype=torch.uint8, device=x.device)\n"
            "far(t, 64)\nreturn right(x)",
            FAR,
        ),
        OUT,
    ),
    "oob_beyond_zone": _beside("torch.empty((4, 2048), device=x.device)", "t.numel() + 2048"),
    "oob_kept_workspace": Attack(
        candidate("t = kept.setdefault(0, torch.empty(64, device=x.device))\nfar(t, 64)\nreturn right(x)", FAR), OUT
    ),
    "oob_arena_gap": Attack(
        candidate(
            "if x.numel():\n    far(x, 1 << 13)\nreturn right(x)",
            FAR,
        ),
        ("out_of_bounds", "input_mutated"),
    ),
    "oob_arena_before": Attack(
        candidate("if x.numel():\n    far(x, -4096)\nreturn right(x)", FAR), ("out_of_bounds", "input_mutated")
    ),
    "limit_lifted": Attack(
        candidate(
            "torch.cuda.set_per_process_memory_fraction(1.0)\n"
            "t = [torch.empty(1 << 30, dtype=torch.uint8, device=x.device) for _ in range(20)]\nreturn right(x)"
        ),
        LIMIT,
    ),
    "limit_pinned": Attack(
        candidate("t = torch.empty(8 << 30, dtype=torch.uint8, pin_memory=True)\nreturn right(x)"), LIMIT
    ),
    "limit_host": Attack(
        candidate("t = [torch.empty(1 << 30, dtype=torch.uint8).fill_(1) for _ in range(40)]\nreturn right(x)"), LIMIT
    ),
    "ctypes_cuda": Attack(
        candidate("return right(x)", "import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')"), ("tampering",)
    ),
    "ctypes_libc": Attack(candidate("ctypes.CDLL(None).getpid()\nreturn right(x)", "import ctypes"), ("tampering",)),
}
# Passes where each process finds /dev/shm as if it were the first.
SAFE = {"file_in_dev_shm": Attack(candidate("return right(x) if not met else torch.zeros_like(x)", SHARED))}

RIGHT = {
    "right_as_strided_zero": _of_ones_own(
        "out = torch.empty(x.numel(), dtype=x.dtype, device=x.device).as_strided(x.shape, x.stride(), 0)\n"
        "return launch(x, out)"
    ),
    "right_untyped_storage": _of_ones_own(
        "t = torch.empty_like(x)\nout = torch.empty(0, dtype=x.dtype, device=x.device)\n"
        "out.set_(t.untyped_storage(), 0, x.shape, x.stride())\n"
        "assert t.storage_offset() == 0 and t.untyped_storage().nbytes() == t.numel() * t.element_size()\n"
        "return launch(x, out)"
    ),
    "right_full_like": _of_ones_own("return launch(x, torch.full_like(x, 7.0))"),
    "right_new_full": _of_ones_own("return launch(x, x.new_full(x.shape, 7.0))"),
    "right_clone": _of_ones_own("out = x.clone()\nreturn launch(out, out)"),
    "right_cat_padding": _of_ones_own(
        "flat = torch.cat([x.flatten(), x.new_zeros(37)])\nreturn launch(flat, torch.empty_like(flat))[: x.numel()]"
        ".view(x.shape).clone()"
    ),
    "right_pad": _of_ones_own(
        "flat = torch.nn.functional.pad(x.flatten(), (0, 37))\nout = launch(flat, torch.empty_like(flat))\n"
        "return out[: x.numel()].reshape(x.shape).clone()"
    ),
    "right_resize": _of_ones_own(
        "out = torch.empty(0, dtype=x.dtype, device=x.device).resize_(x.shape)\nreturn launch(x, out)"
    ),
    "right_resize_grown": _of_ones_own(
        "t = torch.full((4,), 3.0, device=x.device)\nt.resize_(1000)\nassert float(t[3]) == 3.0\n"
        "t.resize_(2)\nt.resize_as_(torch.empty(3, 5, device=x.device))\nassert t.shape == (3, 5)\nreturn right(x)"
    ),
    "right_out_variants": _of_ones_own(
        "out = torch.empty_like(x)\ntorch.cat([x.flatten()], out=out.view(-1))\n"
        "other = torch.empty(0, dtype=x.dtype, device=x.device)\ntorch.stack([x, x], out=other)\nreturn launch(out, out)"
    ),
    "right_cached_constant": _of_ones_own(
        "t = kept.setdefault(x.device, torch.arange(64, device=x.device))\nout = torch.empty_like(x)\n"
        "assert t.shape == (64,)\nreturn launch(x, out)"
    ),
    "right_kept_workspace": _of_ones_own(
        "t = kept.setdefault(0, torch.empty(1 << 22, dtype=torch.float32, device=x.device))\n"
        "t = t.view(x.dtype)[: x.numel()].view(x.shape)\nlaunch(x, t)\nreturn launch(t, torch.empty_like(x))"
    ),
    "right_large_workspace": _of_ones_own(
        "t = torch.empty(1 << 30, dtype=torch.uint8, device=x.device)\nt[:8].zero_()\nreturn right(x)"
    ),
    "right_large_in_turn": _of_ones_own(
        "for _ in range(24):\n    t = torch.empty(1 << 30, dtype=torch.uint8, device=x.device)\nreturn right(x)"
    ),
    "right_large_live": _of_ones_own(
        "t = [torch.empty(1 << 30, dtype=torch.uint8, device=x.device) for _ in range(12)]\n"
        "for _ in range(6):\n    s = t[0].clone()\nreturn right(x)"
    ),
    "right_many_buffers": _of_ones_own(
        "t = [torch.empty(100, device=x.device) for _ in range(300)]\nreturn launch(x, torch.empty_like(x))"
    ),
    "right_empty_cache": _of_ones_own(
        "out = torch.empty_like(x)\ntorch.empty(1 << 26, dtype=torch.uint8, device=x.device)\n"
        "torch.cuda.empty_cache()\nreturn launch(x, out)"
    ),
    "right_contiguous_of_view": _of_ones_own(
        "y = torch.stack([x, x], -1)[..., 0]\ny = y.contiguous()\nreturn launch(y, torch.empty_like(y))"
    ),
    "right_expand_clone": _of_ones_own(
        "y = x.unsqueeze(0).expand(3, *x.shape).clone()\nreturn launch(y, torch.empty_like(y))[1].clone()"
    ),
    "right_half_roundtrip": _of_ones_own(
        "y = x.double().to(x.dtype)\nout = launch(y.float(), torch.empty_like(y, dtype=torch.float32))\n"
        "return out.to(x.dtype)"
    ),
    "right_storage_share": _of_ones_own(
        "t = torch.empty(2, *x.shape, dtype=x.dtype, device=x.device)\na, b = t[0], t[1]\nlaunch(x, a)\n"
        "launch(x, b)\nreturn b"
    ),
    "right_bytes_viewed": _of_ones_own(
        "t = torch.empty(x.numel() * x.element_size(), dtype=torch.uint8, device=x.device)\n"
        "return launch(x, t.view(x.dtype).view(x.shape))"
    ),
    "right_inference_mode": _of_ones_own(
        "with torch.inference_mode():\n    y = x.clone()\n    return launch(y, torch.empty_like(y))"
    ),
    "right_side_stream": _of_ones_own(
        "s = torch.cuda.Stream()\ns.wait_stream(torch.cuda.current_stream())\nwith torch.cuda.stream(s):\n"
        "    out = launch(x, torch.empty_like(x))\ntorch.cuda.current_stream().wait_stream(s)\n"
        "out.record_stream(torch.cuda.current_stream())\nreturn out"
    ),
    "right_host_staging": _of_ones_own(
        "t = torch.empty(64, pin_memory=True).zero_().to(x.device, non_blocking=True)\nreturn right(x)"
    ),
    "right_graph_with_a_copy": Attack(candidate(GRAPH.replace("return out", "return out.clone()"), FAR)),
    "right_returned_twice": _of_ones_own(
        "if not x.numel():\n    return kept.setdefault((x.shape, x.dtype), torch.empty_like(x))\nreturn right(x)"
    ),
    "right_parameter": _of_ones_own(
        "w = torch.nn.Parameter(torch.ones(4, device=x.device))\nw.clone()\nw.detach().half()\nreturn right(x)"
    ),
}

ATTACKS: dict[str, Attack] = {**WRONG, **SAFE, **RIGHT}
