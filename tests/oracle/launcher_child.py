"""Run by test_launcher.py in a process that finds a recording libcuda: packs arguments with Triton's own launcher and with
ours, and prints what the driver was given by each, or what was raised."""

import ctypes
import json
import types

import triton.backends.nvidia.driver as driver
from triton.runtime.build import compile_module_from_src

from oracle.worker import launcher

SIZES = {"*": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
SIZES |= {"fp32": 4, "fp64": 8}


class Pointer:
    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


CASES = [
    (["*fp32", "i32", "fp32", "constexpr", "i64", "*fp16"], [Pointer(4096), -7, 0.1, 128, 1 << 40, None]),
    (["i1", "i16", "u16", "u32", "u64", "u1"], [True, -300, 65535, (1 << 32) - 1, (1 << 64) - 1, 1]),
    (["fp32", "fp64", "fp32", "*i8"], [1e300, 1e300, 3, 12345]),
    (["i8", "u8", "i64"], [127, 200, -1]),
    (["i32"], [1 << 31]),
    (["i32"], [1.5]),
    (["i64"], [1 << 63]),
    (["i16"], [40000]),
    (["fp32"], ["1.0"]),
    (["*fp32"], [Pointer(0xBAD)]),
    (["*fp32"], ["no tensor"]),
    (["*fp32"], [Pointer("text")]),
    ([], []),
]
GRIDS = [(3, 2, 1), (0, 5, 5), (1 << 16, 1 << 15, 2), (1 << 31, 1, 1), (2.5, 1, 1)]


def observed(lib, launch, signature, values, grid):
    kinds = [kind for kind in signature if kind != "constexpr"]
    lib.expect(len(kinds))
    before = lib.count()
    try:
        launch(*grid, 77, 88, 0, 0, None, None, (4, 1, 1024), None, None, None, *values)
    except Exception as error:
        return {"raised": type(error).__name__}
    if lib.count() == before:
        return {"launched": False}
    record = (ctypes.c_uint32 * 7).from_address(ctypes.cast(lib.record(), ctypes.c_void_p).value)
    raw = ctypes.string_at(lib.bytes(), 8 * 64)
    packed = [raw[8 * i : 8 * i + SIZES["*" if kind[0] == "*" else kind]].hex() for i, kind in enumerate(kinds)]
    return {"config": list(record), "arguments": packed}


def main():
    lib = ctypes.CDLL("libcuda.so.1")
    for function in (lib.record, lib.bytes):
        function.restype = ctypes.c_void_p
    metadata = types.SimpleNamespace(
        num_ctas=1, launch_cooperative_grid=False, launch_pdl=False, global_scratch_size=0, global_scratch_align=1,
        profile_scratch_size=0, profile_scratch_align=1,
    )  # fmt: skip
    rows = []
    for signature, values in CASES:
        named = {f"p{i}": kind for i, kind in enumerate(signature)}
        text = driver.make_launcher({}, named, None)
        stock = compile_module_from_src(
            text, "__triton_launcher", driver.library_dirs(), driver.include_dirs, driver.libraries
        ).launch
        ours = driver.CudaLauncher.__new__(driver.CudaLauncher)
        launcher._initialise(None)(ours, types.SimpleNamespace(signature=named), metadata)
        for grid in GRIDS if signature == CASES[0][0] else GRIDS[:1]:
            theirs, own = (observed(lib, one, signature, values, grid) for one in (stock, ours.launch))
            rows.append({"case": repr((signature, values, grid)), "stock": theirs, "ours": own})
    print(json.dumps(rows))


main()
