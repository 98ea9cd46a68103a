"""Everything that says "cuda" lands on the CPU, and the CPU stays told apart from it."""

import threading

import pytest
import torch
import triton
import triton.language as tl

from oracle.interpreter import Unsupported, device_of, redirected

ALLOCATIONS = {
    "empty": lambda d: torch.empty(2, 3, device=d),
    "zeros": lambda d: torch.zeros((2, 3), device=d),
    "ones": lambda d: torch.ones(2, 3, device=d),
    "full": lambda d: torch.full((2, 3), 4.0, device=d),
    "full of an integer": lambda d: torch.full((2, 3), 4, device=d),
    "arange": lambda d: torch.arange(6, device=d),
    "tensor": lambda d: torch.tensor([1, 2, 3], device=d),
    "as_tensor": lambda d: torch.as_tensor([1, 2, 3], device=d),
    "rand": lambda d: torch.rand(3, device=d),
    "randn of a generator": lambda d: torch.randn(3, device=d, generator=torch.Generator(device=d).manual_seed(1)),
    "randint": lambda d: torch.randint(0, 5, (3,), device=d),
    "empty_strided": lambda d: torch.empty_strided((2, 3), (1, 2), device=d),
    "empty_like": lambda d: torch.empty_like(torch.ones(3), device=d),
    "new_empty": lambda d: torch.ones(3).new_empty(2, device=d),
    "to": lambda d: torch.ones(3).to(d),
    "to device and dtype": lambda d: torch.ones(3).to(d, torch.float16),
    "to device=": lambda d: torch.ones(3).to(device=d, dtype=torch.float16, non_blocking=True),
    "module": lambda d: torch.nn.Linear(2, 2).to(d).weight,
    "module device=": lambda d: torch.nn.Linear(2, 2, device=d).weight,
    "no elements": lambda d: torch.empty(0, 3, device=d),
}


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)], ids=repr)
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_allocations_on_cuda(allocation, device):
    with redirected():
        tensor = ALLOCATIONS[allocation](device)
        assert tensor.is_cuda
        assert not tensor.is_cpu
        assert tensor.device == torch.device("cuda", 0)
        assert tensor.device.type == "cuda"
        assert tensor.get_device() == 0
    assert tensor.device.type == "cpu"  # in truth
    assert device_of(tensor) == "cuda"


def test_values_are_torchs():
    with redirected():
        made = {name: make("cuda") for name, make in ALLOCATIONS.items() if "rand" not in name and "empty" not in name}
    for name in ("zeros", "ones", "full", "full of an integer", "arange", "tensor"):
        assert torch.equal(made[name], ALLOCATIONS[name]("cpu"))
        assert made[name].dtype == ALLOCATIONS[name]("cpu").dtype


def test_device_contexts_and_defaults():
    with redirected():
        with torch.device("cuda"):
            assert torch.zeros(3).is_cuda
        torch.set_default_device("cuda")
        try:
            assert torch.zeros(3).is_cuda
            assert torch.arange(3).is_cuda
        finally:
            torch.set_default_device(None)
        assert not torch.zeros(3).is_cuda


def test_moves_between_host_and_device():
    x = torch.rand(3)
    with redirected():
        host = torch.rand(3)
        moved = host.cuda()
        back = x.cpu()
        back[0] = -1.0
        again = x.to("cpu")
        assert [t.is_cuda for t in (x, host, moved, back, again, x.cuda(), host.to(x), x.to(host))] == [
            *(True, False, True, False, False, True, True, False)
        ]
        assert moved is not host
        assert x.cuda() is x
        assert x.to(x.device) is x
        assert host.cpu() is host
        assert x[0] != -1.0
        assert torch.empty_like(host).device.type == "cpu"
        assert host.new_zeros(2).device.type == "cpu"
        with pytest.raises(TypeError, match="can't convert cuda:0"):
            x.numpy()
        assert x.cpu().numpy().shape == (3,)


@triton.jit
def copy(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize("make", [lambda x: torch.empty(4), lambda x: x.cpu(), lambda x: torch.empty(4, device="cpu")])
def test_a_host_tensor_is_no_kernel_argument(call, make):
    with pytest.raises(ValueError, match=r"Pointer argument \(at 1\) cannot be accessed from Triton"):
        call(lambda x: copy[(1,)](x, make(x), 4), torch.rand(4))


def test_derived_tensors_are_kernel_arguments(call):
    def entry(x):
        out = torch.empty(4, device=x.device)
        copy[(1,)]((x.t().contiguous() if x.ndim > 1 else x).float().reshape(-1), out, 4)
        return out

    out, _, findings = call(entry, torch.rand(2, 2).half())
    assert not findings
    assert out.isfinite().all()


def test_torch_cuda():
    with redirected():
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.current_device() == 0
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties("cuda").multi_processor_count > 0
        assert isinstance(torch.cuda.get_device_name(0), str)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.manual_seed(0)
        torch.cuda.manual_seed_all(0)
        torch.manual_seed(0)
        assert torch.cuda.memory_allocated() == 0
        with torch.cuda.device(0), torch.cuda.device(torch.ones(1, device="cuda").device), torch.cuda.nvtx.range("x"):
            pass
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            end.record()
        torch.cuda.current_stream().synchronize()
        assert end.elapsed_time(end) == 0
        assert start.elapsed_time(end) >= 0
        assert isinstance(stream.cuda_stream, int)
        torch.ones(2, device="cuda").record_stream(stream)
        torch.backends.cuda.matmul.allow_tf32 = False
        with pytest.raises(Unsupported, match="CUDA graph"):
            torch.cuda.CUDAGraph()
        assert isinstance(torch.Generator(device="cuda"), torch.Generator)


def test_the_redirection_ends_with_its_context():
    x = torch.rand(3)
    with redirected():
        pass
    assert x.device.type == "cpu"
    assert not x.is_cuda


HOST = {
    "softmax": lambda x: torch.softmax(x, -1),
    "functional": lambda x: torch.nn.functional.softmax(x, -1),
    "linear": lambda x: torch.nn.functional.linear(x, x),
    "operator": lambda x: x + 1,
    "reflected": lambda x: 2 - x,
    "in place": lambda x: x.clone().mul_(2),
    "matmul": lambda x: x @ x,
    "sum": lambda x: x.sum(),
    "method": lambda x: x.exp(),
    "comparison": lambda x: x > 0,
    "aten": lambda x: torch.ops.aten.mm(x, x),
    "aten overload": lambda x: torch.ops.aten.mm.default(x, x),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "module": lambda x: torch.nn.Linear(4, 4)(x),
    "where": lambda x: torch.where(x.bool(), x, x),
    "gather": lambda x: torch.index_select(x, 0, torch.tensor([0])),
}


@pytest.mark.parametrize("name", HOST)
def test_host_arithmetic_is_noticed(call, name):
    _, _, findings = call(HOST[name], torch.rand(4, 4))
    assert "host_compute" in {kind for kind, _ in findings}


def test_host_arithmetic_names_the_function(call):
    _, _, findings = call(lambda x: torch.softmax(x, -1), torch.rand(4, 4))
    assert findings == [("host_compute", "torch.softmax")]


def _legitimate(x):
    x = x.contiguous().view(-1).reshape(4, 4).t().contiguous().clone()
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    out.copy_(x.to(torch.float32).half().float())
    torch.zeros_like(out).fill_(2.0)
    pieces = torch.cat([*x.split(2), torch.stack([x[0], x[1]])]).expand(6, 4).permute(1, 0)
    assert pieces.stride() == (1, 4)
    assert x.is_contiguous()
    assert x.dtype.is_floating_point
    assert x.numel() == x.size(0) * x.size(1)
    assert x.element_size() == 4
    assert x.dim() == x.ndim == len(x.shape)
    a, b = torch.broadcast_tensors(x, x[:1])
    assert torch.result_type(a, b) == torch.promote_types(a.dtype, b.dtype)
    n = triton.cdiv(x.shape[-1], 2) + triton.next_power_of_2(x.shape[0])
    scale = torch.tensor(1.0, device=x.device) * 3 / n
    x.requires_grad_(False)
    return out.transpose(0, 1).unsqueeze(0).squeeze(0), scale.item()


def test_allocating_viewing_copying_casting_and_shapes_are_no_arithmetic(call):
    _, _, findings = call(_legitimate, torch.rand(4, 4))
    assert findings == []


def test_kernels_are_no_host_arithmetic(call):
    _, launches, findings = call(lambda x, out: copy[(1,)](x, out, 4), torch.rand(4), torch.zeros(4))
    assert (launches, findings) == (1, [])


def test_other_threads_may_allocate(call):
    made = []

    def entry(x):
        thread = threading.Thread(target=lambda: made.append(torch.zeros(3)))
        thread.start()
        thread.join()

    call(entry, torch.rand(2))
    assert made[0].shape == (3,)
