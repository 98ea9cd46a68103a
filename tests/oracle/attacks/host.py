"""Answers that host code computes out of torch's sight and kernels only hand on, beside host code that does its job."""

from __future__ import annotations

from tests.oracle.attacks.common import Attack, candidate

HOST = ("host_compute",)

# Arithmetic in a thread, where no mode of torch's is active; kernels that copy.
HIDDEN = """
import threading

@triton.jit
def _copy(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def unseen(compute):
    found = []
    thread = threading.Thread(target=lambda: found.append(compute()))
    thread.start()
    thread.join()
    return found[0]

def hidden(x):
    return unseen(lambda: torch.relu(x.contiguous()))

def grid(x):
    return (triton.cdiv(x.numel(), 256),)

def copied(x, y, out=None):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out
    if x.numel():
        _copy[grid(x)](y, out, x.numel(), BLOCK=256)
    return out
"""

SCALED = """
@triton.jit
def _halve(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * 0.5, mask=i < n)

def halved(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        _halve[(triton.cdiv(x.numel(), 256),)](y, out, x.numel(), BLOCK=256)
    return out
"""


def hides(body: str, before: str = "") -> str:
    return candidate(body, HIDDEN + before)


def scales(body: str, before: str = "") -> str:
    return candidate(body, SCALED + before)


HANDED = {
    "host_in_a_thread": hides("return copied(x, hidden(x))"),
    "host_in_a_tuple": hides(
        """
out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
if x.numel():
    _from_tuple[grid(x)]((hidden(x), x.numel()), out, BLOCK=256)
return out
""",
        """
@triton.jit
def _from_tuple(given, o_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(given[0] + i, mask=i < given[1]), mask=i < given[1])
""",
    ),
    "host_in_a_wrapper": hides(
        "return copied(x, Pointer(hidden(x)))",
        """
class Pointer:
    def __init__(self, tensor):
        self._tensor, self.dtype = tensor, tensor.dtype
    def data_ptr(self):
        return self._tensor.data_ptr()
""",
    ),
    "host_reinterpreted_by_triton": hides(
        """
kind = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[x.dtype]
return copied(x, triton.reinterpret(hidden(x).view(torch.uint8), kind))
"""
    ),
    "host_by_address": hides(
        """
y, out = hidden(x), torch.empty(x.shape, dtype=x.dtype, device=x.device)
if x.numel():
    _from_address[grid(x)](y.data_ptr(), out, x.numel(), BLOCK=256)
return out
""",
        """
@triton.jit
def _from_address(address, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(address.to(o_ptr.dtype) + i, mask=i < n), mask=i < n)
""",
    ),
    "host_in_memory_given_back": hides(
        """
out, y = torch.empty(x.shape, dtype=x.dtype, device=x.device), hidden(x)
address = y.data_ptr()
del y
if x.numel():
    _from_address[grid(x)](address, out, x.numel(), BLOCK=256)
return out
""",
        """
@triton.jit
def _from_address(address, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(address.to(o_ptr.dtype) + i, mask=i < n), mask=i < n)
""",
    ),
    "host_one_longer": hides(
        """
buffer = torch.empty(x.numel() + 3, dtype=x.dtype, device=x.device)
buffer[1 : x.numel() + 1].copy_(hidden(x).reshape(-1))
out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
if x.numel():
    _shifted[grid(x)](buffer, out, x.numel(), BLOCK=256)
return out
""",
        """
@triton.jit
def _shifted(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + 1 + i, mask=i < n), mask=i < n)
""",
    ),
    "host_as_bits": hides(
        """
bits = torch.int32 if x.element_size() == 4 else torch.int16
return copied(x, hidden(x).view(bits), torch.empty(x.shape, dtype=bits, device=x.device)).view(x.dtype)
"""
    ),
    "host_as_double": hides("return copied(x, hidden(x).double())"),
    "host_transposed": hides(
        """
y, out = hidden(x), torch.empty(x.shape, dtype=x.dtype, device=x.device)
if x.numel():
    rows, columns = x.numel() // x.shape[-1], x.shape[-1]
    _transposed[grid(x)](y.reshape(rows, columns).t().contiguous(), out, rows, columns, BLOCK=256)
return out
""",
        """
@triton.jit
def _transposed(x_ptr, o_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < rows * columns
    tl.store(o_ptr + i, tl.load(x_ptr + i % columns * rows + i // columns, mask=inside), mask=inside)
""",
    ),
    "host_backwards": hides(
        """
y, out = hidden(x).reshape(-1).flip(0), torch.empty(x.shape, dtype=x.dtype, device=x.device)
if x.numel():
    _backwards[grid(x)](y, out, x.numel(), BLOCK=256)
return out
""",
        """
@triton.jit
def _backwards(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + n - 1 - i, mask=i < n), mask=i < n)
""",
    ),
    "host_untracked": hides("gc.freeze()\ny = hidden(x)\ngc.freeze()\nreturn copied(x, y)", "import gc"),
    "host_raises_after_the_launch": hides(
        """
out = copied(x, hidden(x))
if x.numel() and not bool((out.reshape(-1)[0] == out.reshape(-1)[0]).item()):
    raise RuntimeError("nothing was written")
return out
"""
    ),
    "host_after_decoys": hides("for _ in range(40):\n    right(x)\nreturn copied(x, hidden(x))"),
}

SCRIPT = """
@torch.jit.script
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2
"""
BELOW = {
    "host_scaled_in_torchscript": scales("return halved(x, twice(x.contiguous()))", SCRIPT),
    "host_scaled_where_torch_asks_nobody": scales(
        "with torch._C.DisableTorchFunction():\n    y = torch.relu(x.contiguous()) * 2\nreturn halved(x, y)"
    ),
    "host_scaled_by_a_gradient": scales(
        """
x = x.contiguous()
with torch._C.DisableTorchFunction(), torch.enable_grad():
    w = x.detach().requires_grad_(True)
    (y,) = torch.autograd.grad(torch.relu(w).square(), w, torch.ones_like(w))
return halved(x, y)
"""
    ),
    "host_scaled_in_an_operator_of_its_own": scales(
        "return halved(x, torch.ops.attack.twice(x.contiguous()))",
        """
from torch import library

@library.custom_op("attack::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2
""",
    ),
    "host_scaled_in_inference_mode": scales(
        """
with torch._C.DisableTorchFunction(), torch.inference_mode():
    y = torch.relu(x.contiguous()) * 2
return halved(x, y)
"""
    ),
    "host_scaled_where_kernels_write": scales(
        """
probe = torch.zeros(1, dtype=x.dtype, device=x.device)
halved(probe, torch.ones(1, dtype=x.dtype, device=x.device))
out = halved(torch.empty(1, dtype=x.dtype, device=x.device), torch.ones(1, dtype=x.dtype, device=x.device))
if out.item() != 0.5:
    raise RuntimeError("kernels do nothing")
return halved(x, twice(x.contiguous()))
""",
        SCRIPT,
    ),
}

RIGHT = {
    "right_pads": candidate(
        """
n = x.numel()
flat = torch.nn.functional.pad(x.contiguous().reshape(-1), (0, -n % 256))
return launch(flat, torch.empty_like(flat))[:n].clone().reshape(x.shape)
"""
    ),
    "right_casts": candidate(
        "y = x.float().contiguous()\nreturn launch(y, torch.empty_like(y)).to(x.dtype)",
    ),
    "right_transposes": candidate(
        """
y = x.reshape(-1, x.shape[-1]).t().contiguous() if x.dim() > 1 and x.numel() else x.contiguous()
out = launch(y, torch.empty_like(y))
return out.t().contiguous().reshape(x.shape) if x.dim() > 1 and x.numel() else out
"""
    ),
    "right_copies_many_ways": candidate(
        """
parts = torch.cat([x.reshape(-1), x.reshape(-1).flip(0)])
twice = torch.stack([parts, parts.roll(1)])
y = twice[0][: x.numel()].reshape(x.shape).clone()
y[..., :1] = x[..., :1]
return right(y)
"""
    ),
    "right_makes_constants": candidate(
        """
zeros, ones = torch.zeros_like(x), torch.ones(8, device=x.device)
table = torch.arange(64, device=x.device).repeat(2).reshape(2, 64).expand(3, 2, 64).contiguous()
steps = torch.linspace(0, 1, 16, device=x.device)
mask = torch.full((16,), True, device=x.device)
return right(x)
"""
    ),
    "right_asks_for_one_value": candidate(
        """
if x.numel():
    first, last = x.reshape(-1)[0].item(), float(x.reshape(-1)[-1])
    if first != first or last != last:
        return right(x.clone())
return right(x)
"""
    ),
    "right_keeps_tables": candidate(
        """
if x.shape not in TABLES:
    shape = torch.tensor(list(x.shape) or [1], dtype=torch.int32, device=x.device)
    TABLES[x.shape] = shape, torch.tril_indices(4, 4, device=x.device), torch.ones(16, 16, device=x.device).bool()
shape, _, _ = TABLES[x.shape]
return right(x)
""",
        "TABLES = {}",
    ),
    "right_keeps_its_workspace": candidate(
        """
x = x.contiguous()
n = x.numel()
if KEPT.get("size", 0) < n:
    KEPT.update(size=n, space=torch.empty(n, dtype=torch.float32, device=x.device))
y = KEPT.get("space", x.float())[:n].reshape(x.shape)
y.copy_(x)
return launch(y, torch.empty_like(x))
""",
        "KEPT = {}",
    ),
    "right_in_two_kernels": candidate(
        """
y = launch(x.contiguous(), torch.empty(x.shape, device=x.device))
return launch(y, torch.empty(x.shape, dtype=x.dtype, device=x.device))
"""
    ),
    "right_as_a_function_of_autograd": candidate(
        "return Relu.apply(x)",
        """
class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return right(x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)
""",
    ),
    "right_as_a_module": candidate(
        "return MODULE(x)",
        """
class Relu(torch.nn.Module):
    def forward(self, x):
        return right(x)
MODULE = Relu()
""",
    ),
    "right_as_an_operator_of_its_own": candidate(
        "return torch.ops.attack.relu(x.contiguous())",
        """
from torch import library

@library.custom_op("attack::relu", mutates_args=())
def relu_op(x: torch.Tensor) -> torch.Tensor:
    return right(x)
""",
    ),
    "right_in_inference_mode": candidate(
        "with torch.inference_mode():\n    y = right(x.reshape(-1).unsqueeze(0)).squeeze(0)\n    return y.view(x.shape)"
    ),
    "right_prints": candidate('text = f"{x.shape} {x} {x.dtype}"\nreturn right(x)'),
    "right_by_halves": candidate(
        """
flat, half = x.contiguous().reshape(-1), x.numel() // 2
out = torch.empty_like(flat)
for part, to in zip(flat.split([half, x.numel() - half]), out.split([half, x.numel() - half])):
    launch(part, to)
return out.reshape(x.shape)
"""
    ),
    "right_by_index": candidate(
        """
if x.dim() == 0 or x.shape[0] < 2:
    return right(x)
order = torch.arange(x.shape[0] - 1, -1, -1, device=x.device)
return right(x[order])[order]
"""
    ),
    "right_in_place_of_a_copy": candidate("y = x.clone(memory_format=torch.contiguous_format)\nreturn launch(y, y)"),
}

ATTACKS: dict[str, Attack] = {
    **{name: Attack(source, HOST) for name, source in {**HANDED, **BELOW}.items()},
    **{name: Attack(source, ()) for name, source in RIGHT.items()},
}
