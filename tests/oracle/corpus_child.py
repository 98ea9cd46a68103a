"""Runs corpus kernels on the Triton interpreter against PyTorch in float64; prints what differs, one JSON object.

A program of its own, because TRITON_INTERPRET must be set before triton is imported. Arguments: SUITE [DEVICE [NAME...]].
On a GPU the same kernels run compiled ("cuda").
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys

import torch
import torch.nn.functional as F

from oracle.corpus import kernels

# Right kernels differ from float64 by rounding alone: (rtol, atol) per dtype, atol scaled by the result's largest value.
BOUNDS = {torch.float32: (2e-5, 4e-6), torch.float16: (4e-3, 2e-3), torch.bfloat16: (3e-2, 1.6e-2)}
ROWS = [(4, 256), (1, 1), (7, 3), (2, 3, 257), (5, 1025), (600,), (3, 0, 5), (2, 1, 1, 31), (1, 2500)]
SHAPES = [(4, 256), (1,), (), (7, 3), (2, 3, 257), (0, 4), (4, 0), (3, 1100)]
GENERATOR = torch.Generator().manual_seed(0)


def randn(*shape):
    return torch.randn(shape, generator=GENERATOR)


def attention(q, k, v, causal=False, scale=None):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)


def seed_attention(q, k, v):
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v


def rms_norm(x, weight=1.0, eps=1e-6):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def add_rms_norm(x, residual, weight, eps=1e-6):
    return rms_norm(x + residual, weight, eps), x + residual


def masked_softmax(x, mask):
    return torch.where(mask.any(-1, keepdim=True), torch.softmax(x.masked_fill(~mask, -math.inf), -1), 0.0)


def rope(x, cos, sin):
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


REFERENCES = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "masked_softmax": masked_softmax,
    "layer_norm": lambda x, w, b, eps=1e-5: F.layer_norm(x, x.shape[-1:], w, b, eps),
    "seed/layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": rms_norm,
    "seed/rms_norm": lambda x: rms_norm(x, eps=1e-5),
    "add_rms_norm": add_rms_norm,
    "l2norm": lambda x, eps=1e-12: F.normalize(x, dim=-1, eps=eps),
    "l2_norm": lambda x: x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-12),
    "gelu": F.gelu,
    "seed/gelu": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "elu": F.elu,
    "swiglu": lambda a, b: F.silu(a) * b,
    "add": torch.add,
    "mul": torch.mul,
    "matmul": torch.matmul,
    "bmm": torch.bmm,
    "linear": F.linear,
    "cross_entropy": F.cross_entropy,
    "rope": rope,
    "attention": attention,
    "seed/attention": seed_attention,
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "max": lambda x: x.max(-1).values,
    "argmax": lambda x: x.argmax(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "var": lambda x, correction=1: x.var(-1, correction=correction),
    "std": lambda x, correction=1: x.std(-1, correction=correction),
    "transpose": lambda x: x.mT,
    "embedding": lambda idx, weight: weight[idx],
}
ELEMENTWISE = {"gelu", "silu", "relu", "leaky_relu", "sigmoid", "tanh", "elu"}
PRODUCTS = [(1, 1, 1), (33, 17, 65), (64, 64, 64), (5, 130, 3), (0, 3, 4)]


def calls(suite, op):
    """(arguments, keywords) of an operator, float32 and contiguous."""
    if op in ELEMENTWISE:
        keywords = {"gelu": {"approximate": "tanh"}, "leaky_relu": {"negative_slope": 0.3}}.get(op, {})
        for shape in [(2, 3, 257), (1, 1, 1), (2, 0, 3), (2, 3, 1100)] if suite == "seed" else SHAPES:
            yield (3 * randn(*shape),), {}
            yield (3 * randn(*shape),), keywords if suite == "ops" else {}
    elif op in ("add", "mul"):
        for a, b in [
            ((4, 256), (4, 256)),
            ((3, 1, 5), (7, 1)),
            ((), (2, 3)),
            ((2, 1, 3, 1, 2, 1), (3, 4, 2, 5)),
            ((0, 3), (1, 3)),
        ]:
            yield (randn(*a), randn(*b)), {}
    elif op == "swiglu":
        for shape in SHAPES:
            yield (3 * randn(*shape), randn(*shape)), {}
    elif op in ("matmul", "bmm"):
        for m, k, n in PRODUCTS:
            batch = (3,) if op == "bmm" else ()
            yield (randn(*batch, m, k), randn(*batch, k, n)), {}
    elif op == "linear":
        for m, k, n in PRODUCTS:
            yield (randn(2, m, k), randn(n, k), randn(n)), {}
            yield (randn(m, k), randn(n, k)), {}
        yield (randn(7), randn(3, 7), randn(3)), {}
    elif op == "cross_entropy":
        for rows, classes in [(4, 256), (1, 1), (33, 7), (5, 1025), (0, 3)]:
            target = torch.randint(0, classes, (rows,), generator=GENERATOR)
            yield (3 * randn(rows, classes), target), {}
            yield (3 * randn(rows, classes), target), {"ignore_index": 1}
        yield (randn(3, 5), torch.full((3,), -100)), {}
    elif op == "rope":
        for (b, s, h, d), half in [
            ((2, 5, 3, 32), 16),
            ((1, 1, 1, 2), 1),
            ((2, 3, 4, 33), 5),
            ((0, 2, 2, 8), 4),
            ((1, 7, 20, 64), 32),
        ]:
            yield (randn(b, s, h, d), randn(s, half), randn(s, half)), {}
    elif op == "attention" and suite == "seed":
        for m, n, d in [(8, 64, 16), (1, 1, 8), (17, 130, 33)]:
            yield (2 * randn(m, d), 2 * randn(n, d), randn(n, d)), {}
    elif op == "attention":
        for b, h, hk, m, n, d in [(2, 4, 2, 17, 33, 16), (1, 1, 1, 1, 1, 1), (1, 6, 2, 40, 70, 33), (0, 2, 2, 3, 3, 8)]:
            for keywords in ({}, {"causal": True}, {"scale": 0.3, "causal": True}):
                yield (randn(b, h, m, d), randn(b, hk, n, d), randn(b, hk, n, d)), keywords
    elif op == "embedding":
        for shape in [(4, 5), (), (0,), (1,), (70,)]:
            yield (torch.randint(0, 9, shape, generator=GENERATOR), randn(9, 37)), {}
    elif op == "transpose":
        for shape in [(4, 256), (1, 1), (2, 3, 65, 33), (0, 3), (1, 70)]:
            yield (randn(*shape),), {}
    else:
        yield from row_calls(suite, op)


def row_calls(suite, op):
    """Calls of the operators over the last dim."""
    for shape in ROWS if suite == "ops" else [(2, 3, 257), (1, 1, 3), (1, 2, 1), (0, 2, 3), (1, 2, 1025)]:
        x, n = 3 * randn(*shape), shape[-1]
        if op in ("var", "std"):
            yield (x + 5,), {"correction": 0}
            yield (x + 5,), {"correction": 3}
        if op == "masked_softmax":
            mask = randn(*shape) > 0
            if len(shape) > 1:
                mask[..., :1, :] = False
            yield (x, mask), {}
        elif suite == "ops" and op == "layer_norm":
            yield (x, randn(n), randn(n)), {}
            yield (x, randn(n), randn(n)), {"eps": 0.5}
        elif suite == "ops" and op in ("rms_norm", "add_rms_norm"):
            yield (x, *([randn(*shape)] if op == "add_rms_norm" else []), randn(n)), {"eps": 0.5}
        elif op == "argmax":
            yield (torch.round(x),), {}
        elif op == "l2norm":
            yield (x,), {"eps": 20.0}
            yield (x,), {}
        else:
            yield (x,), {}
    if op == "sum":
        yield (randn(3, 0),), {}
    for bad in (math.nan, math.inf, -math.inf) if len(REFERENCES[key(suite, op)].__code__.co_varnames) == 1 else ():
        x = randn(2, 3, 9)
        x[0, 1, 4] = x[1, 2, 8] = bad
        x[0, 0] = -math.inf
        yield (x,), {}


def key(suite, op):
    return f"{suite}/{op}" if f"{suite}/{op}" in REFERENCES else op


def strided(tensor, kind):
    """The same values under other strides: with gaps, or with the first and last dims swapped in memory."""
    if tensor.dim() == 0:
        return tensor
    if kind == "gaps":
        room = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1] + 3), 7, dtype=torch.float64).to(tensor)
        view = room[..., 1 : 2 * tensor.shape[-1] : 2]
        view.copy_(tensor)
        return view
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def differs(got, want, dtype):
    """None, or one line that says how a result differs from the float64 reference."""
    if tuple(got.shape) != tuple(want.shape):
        return f"shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    if got.dtype != (dtype if want.is_floating_point() else want.dtype):
        return f"dtype {got.dtype}"
    if not got.is_contiguous():
        return "not contiguous"
    got = got.cpu().to(want.dtype)
    rtol, atol = BOUNDS[dtype]
    finite = want[torch.isfinite(want)]
    atol *= max(1e-3, finite.abs().max().item()) if finite.numel() else 1.0
    if torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return None
    worst = (got - want).abs().nan_to_num(nan=math.inf).flatten().max().item()
    return f"largest difference {worst:.3g}, allowed {atol:.3g}"


def variants(suite, op, device):
    """Every call as (arguments, keywords, dtype): float32 and contiguous, in other strides, in halves.

    On a CPU each call is made in one of these ways in turn; a GPU takes them all.
    """
    ways = ["contiguous", torch.float16, "gaps", "swapped", torch.bfloat16]
    if device == "cpu" and op in ("matmul", "bmm", "linear", "attention"):
        ways.remove(torch.bfloat16)  # the stock interpreter cannot multiply bfloat16 tiles
    if op == "matmul" and suite == "seed":
        ways = ["contiguous", "gaps", "swapped"]  # float32 alone
    for index, (arguments, keywords) in enumerate(calls(suite, op)):
        for way in ways if device != "cpu" else [ways[index % len(ways)]]:
            if isinstance(way, torch.dtype):
                yield tuple(a.to(way) if a.is_floating_point() else a for a in arguments), keywords, way
            elif way == "contiguous" or any(argument.numel() == 0 for argument in arguments):
                yield arguments, keywords, torch.float32
            else:
                yield tuple(strided(argument, way) for argument in arguments), keywords, torch.float32


def problems(kernel, device):
    spec = importlib.util.spec_from_file_location(f"corpus_{kernel.suite}_{kernel.name}", kernel.path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    GENERATOR.manual_seed(0)
    for arguments, keywords, dtype in variants(kernel.suite, kernel.op, device):
        wide = [a.double() if a.is_floating_point() else a for a in arguments]
        want = REFERENCES[key(kernel.suite, kernel.op)](*wide, **keywords)
        sent = [
            a.clone(memory_format=torch.preserve_format).to(device) if a.is_contiguous() else a.to(device)
            for a in arguments
        ]
        try:
            got = getattr(module, kernel.op)(*sent, **keywords)
        except Exception as error:
            yield f"{[tuple(a.shape) for a in arguments]} {keywords} {dtype}: raised {type(error).__name__}: {error}"
            continue
        wants, gots = (want, got) if isinstance(want, tuple) else ((want,), (got,))
        for g, w in zip(gots, wants, strict=True):
            found = differs(g, w, dtype)
            if found:
                yield f"{[tuple(a.shape) for a in arguments]} {keywords} {dtype}: {found}"
        if not all(torch.equal(s.cpu().nan_to_num(), a.nan_to_num()) for s, a in zip(sent, arguments, strict=True)):
            yield "an input was changed"


if __name__ == "__main__":
    torch.set_num_threads(1)
    suite, device = sys.argv[1], (*sys.argv[2:], "cpu")[0]
    names = sys.argv[3:]
    chosen = [k for k in kernels(suite=suite) if not names or k.name in names]
    print(json.dumps({kernel.name: list(problems(kernel, device)) for kernel in chosen}))
