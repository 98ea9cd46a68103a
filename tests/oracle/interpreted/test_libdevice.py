"""libdevice compiles on a GPU, so that it must run here: values against torch and scipy, refusals as Triton's."""

import pytest
import torch
import triton
import triton.language as tl
from scipy import special
from triton.compiler.errors import CompilationError
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

from oracle.interpreter import Unsupported

# what the table below adds to x before the function sees it
SHIFT = {"log1p": 8, "rsqrt": 8, "lgamma": 8}


@triton.jit
def unary(x, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i)))


@triton.jit
def binary(x, y, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i)))


UNARY = {
    "tanh": torch.tanh,
    "erf": torch.erf,
    "erfc": lambda x: torch.from_numpy(special.erfc(x.numpy())),
    "erfinv": lambda x: torch.erfinv(x / 8),
    "log1p": lambda x: torch.log1p(x + 8),
    "expm1": torch.expm1,
    "rsqrt": lambda x: torch.rsqrt(x + 8),
    "round": lambda x: torch.copysign(torch.floor(x.abs() + 0.5), x),
    "rint": torch.round,
    "trunc": torch.trunc,
    "sinh": torch.sinh,
    "atan": torch.atan,
    "cbrt": lambda x: torch.from_numpy(special.cbrt(x.numpy())),
    "lgamma": lambda x: torch.from_numpy(special.gammaln(x.numpy() + 8)),
    "j0": torch.special.bessel_j0,
    "cyl_bessel_i0": torch.special.i0,
    "normcdf": lambda x: torch.from_numpy(special.ndtr(x.numpy())),
    "fast_expf": torch.exp,
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("module", [libdevice, cuda_libdevice], ids=["generic", "cuda"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_unary_functions(module, name, dtype):
    if name.startswith("fast_") and dtype is torch.float64:
        pytest.skip("float32 only")
    x = torch.linspace(-7, 7, 64, dtype=dtype)
    argument = x / 8 if name == "erfinv" else x + SHIFT.get(name, 0)
    out = torch.empty_like(x)
    unary[(1,)](argument, out, getattr(module, name), 64)
    want = UNARY[name](x.double()).to(dtype)
    torch.testing.assert_close(out, want, rtol=4 * torch.finfo(dtype).eps, atol=1e-6 if name == "j0" else 1e-30)


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod", "hypot", "copysign", "div_rn"])
def test_binary_functions(name):
    torch.manual_seed(0)
    x, y = torch.rand(64) * 5 + 0.1, torch.rand(64) * 5 + 0.1
    out = torch.empty_like(x)
    binary[(1,)](x, y, out, getattr(libdevice, name), 64)
    want = {"pow": torch.pow, "div_rn": torch.div}.get(name) or getattr(torch, name)
    torch.testing.assert_close(out, want(x.double(), y.double()).float(), rtol=3e-7, atol=0)


@triton.jit
def predicates(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.isnan(v).to(tl.int32) + 2 * libdevice.isinf(v).to(tl.int32))


def test_predicates():
    x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    out = torch.zeros(4, dtype=torch.int32)
    predicates[(1,)](x, out, 4)
    assert out.tolist() == [0, 1, 2, 2]


@triton.jit
def through_language(x, out):
    tl.store(out, tl.extra.cuda.libdevice.tanh(tl.load(x)))


def test_reached_through_the_language_module():
    out = torch.zeros(1)
    through_language[(1,)](torch.ones(1), out)
    assert out.item() == pytest.approx(0.7615942)


def test_a_narrow_float_is_refused_as_by_the_compiler():
    x = torch.zeros(4, dtype=torch.float16)
    with pytest.raises(CompilationError):
        unary[(1,)](x, x, libdevice.tanh, 4)


@triton.jit
def unknown(x):
    tl.store(x, libdevice.no_such_function(tl.load(x)))


def test_what_no_backend_has_stays_an_error():
    with pytest.raises(CompilationError, match="no_such_function"):
        unknown[(1,)](torch.zeros(1))


def test_what_is_not_modelled_is_not_the_candidates_fault(call):
    with pytest.raises(Unsupported, match="__nv_fadd_ru"):
        call(lambda x: binary[(1,)](x, x, x, libdevice.add_ru, 4), torch.zeros(4))
