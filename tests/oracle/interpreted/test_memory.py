"""Every access outside the live tensors is stopped before it happens; every legitimate one is left alone."""

import pytest
import torch
import triton
import triton.language as tl

from oracle.interpreter import OutOfBounds, begin_call, end_call, redirected
from oracle.poison import LANES, POISON, pattern


@triton.jit
def load_at(x, out, offset, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + offset + i))


@triton.jit
def store_at(x, offset, N: tl.constexpr):
    tl.store(x + offset + tl.arange(0, N), 1.0)


@triton.jit
def add_at(x, offset):
    tl.atomic_add(x + offset, 1.0)


@triton.jit
def swap_at(x, offset):
    tl.atomic_cas(x + offset, 0, 1)


FAR = 1 << 34


@pytest.mark.parametrize("offset", [-1, 1, 8, FAR, -FAR], ids=str)
def test_loads_near_and_far(call, offset):
    x, out = torch.ones(8), torch.zeros(8)
    with pytest.raises(OutOfBounds, match=r"load out of bounds in \d+ of 8 lanes.* of `(x|out)`, which has 8 \(kernel"):
        call(lambda x, out: load_at[(1,)](x, out, offset, 8), x, out)
    _, findings = end_call()
    assert [kind for kind, _ in findings] == ["out_of_bounds"]
    assert not out.any()


@pytest.mark.parametrize("offset", [-1, 1, 8, FAR, -FAR], ids=str)
def test_stores_near_and_far_change_nothing(call, offset):
    buffer = torch.zeros(24)
    x = buffer[8:16]
    with pytest.raises(OutOfBounds, match="store out of bounds"):
        call(lambda x: store_at[(1,)](x, offset, 8), x)
    assert not buffer.any()


@pytest.mark.parametrize("kernel", [add_at, swap_at])
def test_atomics(call, kernel):
    x = torch.zeros(8, dtype=torch.int32)
    call(lambda x: kernel[(1,)](x, 7), x)
    assert x[7] == 1
    with pytest.raises(OutOfBounds, match="atomic access out of bounds"):
        call(lambda x: kernel[(1,)](x, 8), x)


def test_message_tells_lanes_element_tensor_kernel_and_line(call):
    x, out = torch.ones(8), torch.zeros(8)
    with pytest.raises(OutOfBounds) as caught:
        call(lambda x, out: load_at[(1,)](x, out, 3, 8), x, out)
    line = load_at.fn.__code__.co_firstlineno + 3
    assert str(caught.value) == (
        "load out of bounds in 3 of 8 lanes: the first at element 8 of `x`, which has 8 "
        f"(kernel `load_at`, line {line})"
    )


def test_swallowed_exception_is_still_found(call):
    def entry(x):
        try:
            store_at[(1,)](x, 1, 8)
        except Exception:
            return x + 1

    _, _, findings = call(entry, torch.zeros(8))
    assert findings[0][0] == "out_of_bounds"


@triton.jit
def masked_copy(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def test_masked_lanes_may_point_anywhere(call):
    x, out = torch.rand(5), torch.zeros(5)
    call(lambda x, out: masked_copy[(1,)](x, out, 5, 1024), x, out)
    assert torch.equal(x, out)


def test_a_view_may_reach_the_rest_of_its_tensor(call):
    x, out = torch.rand(8), torch.zeros(8)
    _, _, findings = call(lambda x, out: load_at[(1,)](x[4:], out, -4, 8), x, out)
    assert torch.equal(x, out)
    assert not findings


def test_a_temporary_copy_is_known_as_a_whole(call):
    def entry(x, out):
        copied = x.t().contiguous()
        load_at[(1,)](copied[1], out, -4, 8)
        return copied

    copied, _, _ = call(entry, torch.rand(4, 2), out := torch.zeros(8))
    assert torch.equal(copied.flatten(), out)


def test_guards_of_an_input_stay_out_of_bounds_whatever_view_is_passed(call):
    buffer = torch.rand(24)

    def entry(x, out):
        wider = x.as_strided((16,), (1,))
        load_at[(1,)](wider, out, 8, 8)

    with pytest.raises(OutOfBounds):
        call(entry, buffer[8:16], torch.zeros(8))


def test_an_input_of_an_earlier_call_is_no_longer_live(call):
    kept = []
    old, out = torch.rand(8), torch.zeros(8)
    call(lambda x: kept.append(x.data_ptr()), old)

    def entry(x, out):
        addresses = torch.tensor(kept, dtype=torch.int64, device="cuda")
        load_through[(1,)](addresses, out, 8)

    with pytest.raises(OutOfBounds):
        call(entry, torch.rand(8), out)


@triton.jit
def load_through(addresses, out, N: tl.constexpr):
    i = tl.arange(0, N)
    for p in range(1):
        x = tl.load(addresses + p).to(tl.pointer_type(tl.float32))
        tl.store(out + p * N + i, tl.load(x + i))


def test_pointer_arrays(call):
    def entry(x, out):
        parts = [x[:8], x[8:].clone()]
        addresses = torch.tensor([part.data_ptr() for part in parts], dtype=torch.int64, device="cuda")
        for index in range(2):
            load_through[(1,)](addresses[index:], out[8 * index :], 8)

    x, out = torch.rand(16), torch.zeros(16)
    _, _, findings = call(entry, x, out)
    assert torch.equal(x, out)
    assert not findings


@triton.jit
def sum_lanes(x, out, n, GIVEN: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0.0) if GIVEN else tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(v, 0))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("poison", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32], ids=str)
def test_undefined_lanes_show_only_where_other_is_missing(call, lanes, poison, dtype):
    x = torch.ones(4, dtype=dtype)
    n = 0 if lanes == 1 else 3

    def total(given, fill):
        out = torch.zeros(1, dtype=dtype)
        run = lambda x, out: sum_lanes[(1,)](x, out, n, given, lanes)  # noqa: E731
        call(run, x, out, fill_lanes=fill, poison=poison)
        return out.item()

    assert total(True, True) == n
    assert total(False, False) == n
    assert total(False, True) != n


@triton.jit
def copy_lanes(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n))


@pytest.mark.parametrize("poison", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "int64", "int8", "bool"])
def test_lanes_hold_the_pattern_that_the_judge_knows(call, dtype, poison):
    x, out = (torch.zeros(4, dtype=getattr(torch, dtype)) for _ in range(2))
    call(lambda x, out: copy_lanes[(1,)](x, out, 2, 4), x, out, fill_lanes=True, poison=poison)
    raw = out.view(torch.uint8).numpy().view(f"u{out.element_size()}")
    want = LANES[poison][dtype]
    assert raw[2:].tolist() == [want, want]


@pytest.mark.parametrize("poison", [0, 1])
@pytest.mark.parametrize("dtype", POISON[0])
def test_fresh_memory_holds_the_pattern_that_the_judge_knows(call, dtype, poison):
    make = [
        lambda x: torch.empty(3, dtype=x.dtype, device="cuda"),
        torch.empty_like,
        lambda x: x.new_empty(3),
        lambda x: torch.empty_strided((3,), (2,), dtype=x.dtype, device=x.device),
    ]
    for function in make:
        made, _, _ = call(function, torch.zeros(3, dtype=getattr(torch, dtype)), poison=poison)
        raw = made.contiguous().view(torch.uint8).numpy().view(f"u{made.element_size()}")
        assert (raw == pattern(dtype, poison)).all()


@pytest.mark.parametrize("value", [0, 1, 7])
def test_filled_allocations(call, value):
    def entry(x):
        like, new = torch.full_like(x, value), x.new_full((2, 3), value)
        full = torch.full((2, 3), value, dtype=x.dtype, device="cuda")
        if value == 0:
            return [torch.zeros_like(x), x.new_zeros(2, 3), torch.zeros(2, 3, device=x.device), like, new, full]
        if value == 1:
            return [torch.ones_like(x), x.new_ones(2, 3), torch.ones(2, 3, device=x.device), like, new, full]
        return [like, new, full]

    made, _, _ = call(entry, torch.empty(2, 3))
    for tensor in made:
        assert torch.equal(tensor, torch.full((2, 3), float(value)))


@pytest.mark.parametrize("offset", [-1, 8])
def test_beyond_an_allocation(call, offset):
    def entry(x):
        out = torch.empty(8, device="cuda")
        store_at[(1,)](out, offset, 1)

    with pytest.raises(OutOfBounds, match=f"element {offset} of `x`, which has 8"):
        call(entry, torch.zeros(8))


def test_allocations_look_ordinary(call):
    def entry(x):
        return torch.empty_like(x), torch.empty(2, 3, dtype=torch.float16, device=x.device), x.new_empty((0, 4))

    x = torch.rand(4, 6).t()
    (like, plain, empty), _, findings = call(entry, x)
    assert (like.shape, like.stride(), like.storage_offset()) == (x.shape, x.stride(), 0)
    assert like.untyped_storage().nbytes() == 4 * 24
    assert plain.is_contiguous()
    assert plain.dtype == torch.float16
    assert empty.shape == (0, 4)
    assert not findings


def test_writes_into_a_red_zone_are_found(call):
    kept = []

    def entry(x):
        out = torch.empty(4, device="cuda")
        kept.append(out)
        import ctypes

        ctypes.memset(out.data_ptr() + 16, 0, 4)
        return out

    _, _, findings = call(entry, torch.zeros(1))
    assert findings == [("out_of_bounds", "4 bytes after an allocated tensor of shape [4] were written")]


def test_freed_allocations_are_forgotten(call):
    def entry(x):
        address = torch.empty(8, device="cuda").data_ptr()
        load_through[(1,)](torch.tensor([address], device="cuda"), x, 8)

    with pytest.raises(OutOfBounds):
        call(entry, torch.zeros(8))


def test_nothing_is_found_without_a_reason():
    begin_call(reverse=False, poison=0, fill_lanes=False, ranges=[])
    with redirected():
        torch.zeros(4, device="cuda")
    assert end_call() == (0, [])
