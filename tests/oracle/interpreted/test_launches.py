"""Launching: grids, options, counting, order, autotuning, heuristics, warm-ups, benchmarks."""

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from oracle.interpreter import configurations


@triton.jit
def mark(out, n, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i + 1, mask=i < n)


GRIDS = {
    "tuple": (4,),
    "list": [4],
    "two": (2, 2),
    "three": (4, 1, 1),
    "callable": lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
    "callable list": lambda meta: [triton.cdiv(meta["n"], meta["BLOCK"])],
    "size": torch.Size([4]),
}


@pytest.mark.parametrize("grid", GRIDS)
def test_grids(call, grid):
    out = torch.zeros(30, dtype=torch.int32)
    _, launches, findings = call(lambda out: mark[GRIDS[grid]](out, 30, BLOCK=8), out)
    assert torch.equal(out, torch.arange(1, 31, dtype=torch.int32))
    assert (launches, findings) == (1, [])


@pytest.mark.parametrize("grid", [4, (4.0,), (1, 1, 1, 1), (), (-1,)])
def test_grids_that_a_gpu_refuses(grid):
    with pytest.raises((TypeError, ValueError)):
        mark[grid](torch.zeros(30, dtype=torch.int32), 30, BLOCK=8)


def test_an_empty_grid_is_no_launch(call):
    _, launches, _ = call(lambda out: mark[(0,)](out, 0, BLOCK=8), torch.zeros(0, dtype=torch.int32))
    assert launches == 0


def test_launches_are_counted_in_each_call(call):
    def entry(out):
        for _ in range(3):
            mark[(4,)](out, 30, 8)

    out = torch.zeros(30, dtype=torch.int32)
    assert call(entry, out)[1] == 3
    assert call(entry, out)[1] == 3


def test_options_are_accepted_and_unknown_ones_refused():
    out = torch.zeros(8, dtype=torch.int32)
    mark[(1,)](out, 8, BLOCK=8, num_warps=8, num_stages=2, num_ctas=1, maxnreg=64)
    with pytest.raises(KeyError, match="Keyword argument BLOCKS was specified but unrecognised"):
        mark[(1,)](out, 8, BLOCK=8, BLOCKS=8)
    with pytest.raises(TypeError, match="missing a required argument: 'BLOCK'"):
        mark[(1,)](out, 8)


@triton.jit
def follow(out):
    p = tl.program_id(0)
    before = tl.load(out + p - 1, mask=p > 0, other=0)
    tl.store(out + p, before + 1)


@pytest.mark.parametrize(("reverse", "want"), [(False, [1, 2, 3, 4]), (True, [1, 1, 1, 1])])
def test_reversed_order_exposes_programs_that_depend_on_each_other(call, reverse, want):
    out = torch.zeros(4, dtype=torch.int32)
    call(lambda out: follow[(4,)](out), out, reverse=reverse)
    assert out.tolist() == want


@triton.jit
def trace(out, count):
    position = tl.atomic_add(count, 1)
    tl.store(out + position, tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2))


def test_reversed_order_runs_every_program_once(call):
    def order(reverse):
        out, count = torch.zeros(12, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        call(lambda out, count: trace[(2, 3, 2)](out, count), out, count, reverse=reverse)
        return out.tolist()

    assert order(True) == order(False)[::-1]
    assert sorted(order(True)) == sorted(x + 10 * y + 100 * z for x in range(2) for y in range(3) for z in range(2))


TUNED: list[int] = []


def _config(block):
    return triton.Config({"BLOCK": block}, num_warps=4, pre_hook=lambda args: TUNED.append(args["BLOCK"]))


@triton.autotune(configs=[_config(8), _config(16), _config(32)], key=["n"], reset_to_zero=["out"])
@triton.jit
def tuned(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i, 1, mask=i < n)


@pytest.mark.parametrize(("config", "block"), [(0, 8), (1, 16), (2, 32), (3, 8)])
def test_autotune_runs_one_configuration_once(call, config, block):
    TUNED.clear()
    out = torch.zeros(30, dtype=torch.int32)
    grid = lambda meta: (triton.cdiv(30, meta["BLOCK"]),)  # noqa: E731
    _, launches, findings = call(lambda out: tuned[grid](out, 30), out, config=config)
    assert (launches, findings, TUNED) == (1, [], [block])
    assert out.eq(1).all()
    assert configurations() == 3
    assert tuned.best_config.kwargs == {"BLOCK": block}


def test_a_tuned_parameter_given_again_is_refused():
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned[(1,)](torch.zeros(30, dtype=torch.int32), 30, BLOCK=8)


def _prune(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] >= named_args["n"]]


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}) for b in (8, 32, 64)],
    key=["n"],
    prune_configs_by={"early_config_prune": _prune},
    warmup=1,
    rep=1,
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def pruned(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, BLOCK + EVEN, mask=i < n)


def test_pruning_and_heuristics(call):
    out = torch.zeros(30, dtype=torch.int32)
    call(lambda out: pruned[(1,)](out, 30), out)
    assert out.eq(32).all()
    assert configurations() == 2


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def guessed(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, BLOCK, mask=i < n)


def test_heuristics_alone():
    out = torch.zeros(30, dtype=torch.int32)
    guessed[(1,)](out, 30)
    assert out.eq(32).all()


def test_warm_up_launches_nothing_and_sizes_a_grid(call):
    def entry(out):
        compiled = mark.warmup(out, 30, BLOCK=8, grid=(1,))
        compiled._init_handles()
        occupancy = 65536 // (compiled.n_regs * 32 * 4)
        occupancy = min(occupancy, 232448 // compiled.metadata.shared)
        compiled[(min(occupancy, 4), 1, 1)](out, 30)
        return occupancy

    out = torch.zeros(30, dtype=torch.int32)
    occupancy, launches, _ = call(entry, out)
    assert launches == 1
    assert occupancy >= 4
    assert out.all()


def test_driver_and_benchmarks(call):
    def entry(out):
        driver = triton.runtime.driver.active
        properties = driver.utils.get_device_properties(driver.get_current_device())
        assert properties["multiprocessor_count"] > 0
        assert properties["max_shared_mem"] > 0
        assert driver.get_current_target().arch == 90
        run = lambda: mark[(4,)](out, 30, BLOCK=8)  # noqa: E731
        assert triton.testing.do_bench(run) > 0
        assert len(triton.testing.do_bench(run, quantiles=[0.5, 0.2, 0.8])) == 3

    assert call(entry, torch.zeros(30, dtype=torch.int32))[1] == 2


@triton.jit
def copy_block(source, target, M: tl.constexpr, N: tl.constexpr):
    target.store([0, 0], source.load([0, 0]))


@triton.jit
def copy_block_of_pointers(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])
    target.store([0, 0], source.load([0, 0]))


def test_tensor_descriptors_pad_at_the_edge(call):
    def entry(x, host, device):
        copy_block[(1,)](
            TensorDescriptor(x, [5, 8], [8, 1], [8, 8]), TensorDescriptor(host, [5, 8], [8, 1], [8, 8]), 8, 8
        )
        copy_block_of_pointers[(1,)](x, device, 5, 8, 8, 8)

    x, host, device = torch.rand(5, 8), torch.zeros(5, 8), torch.zeros(5, 8)
    _, _, findings = call(entry, x, host, device)
    assert torch.equal(x, host)
    assert torch.equal(x, device)
    assert not findings


@triton.jit
def copy_bits(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


def test_reinterpreted_tensors(call):
    def entry(x, out):
        copy_bits[(1,)](triton.reinterpret(x, tl.float8e5), triton.reinterpret(out, tl.float8e5), 8)

    x, out = torch.arange(8, dtype=torch.int8), torch.zeros(8, dtype=torch.int8)
    call(entry, x, out)
    assert torch.equal(x, out)
