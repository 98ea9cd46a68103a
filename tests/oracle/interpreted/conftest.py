"""These tests need a process that imports Triton with TRITON_INTERPRET=1: `tests/oracle/test_interpreter.py` starts it."""

import os

import pytest

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = [] if INTERPRETED else ["*"]


def pytest_configure(config):
    if INTERPRETED:
        import oracle.interpreter

        oracle.interpreter.install()


@pytest.fixture
def call():
    """`call(function, *tensors, reverse=…)`: one redirected call; returns (result, launches, findings)."""
    from oracle.interpreter import begin_call, end_call, redirected

    def run(function, *tensors, reverse=False, poison=0, fill_lanes=False, config=0):
        ranges = []
        for tensor in tensors:
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            low = tensor.data_ptr()
            ranges.append((low, low + (last + 1) * tensor.element_size() if tensor.numel() else low))
        begin_call(reverse=reverse, poison=poison, fill_lanes=fill_lanes, ranges=ranges, config=config)
        try:
            with redirected():
                result = function(*tensors)
        finally:
            ended = end_call()
        return result, *ended

    return run
