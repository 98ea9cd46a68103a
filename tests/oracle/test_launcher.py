"""Our launcher gives the driver exactly what the one that Triton would compile gives it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import triton.backends.nvidia.driver as driver

HERE = Path(__file__).parent

# a driver that records its last launch; the structure is the one of cuda.h
RECORDER = r"""
#include "cuda.h"
#include <string.h>
static unsigned record_[7]; static unsigned char bytes_[512]; static int count_, wanted_;
void *record(void) { return record_; }
void *bytes(void) { return bytes_; }
int count(void) { return count_; }
void expect(int n) { wanted_ = n; memset(bytes_, 0, sizeof bytes_); }
static CUresult keep(unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared, void **p) {
  unsigned all[7] = {x, y, z, bx, by, bz, shared};
  memcpy(record_, all, sizeof all);
  for (int i = 0; i < wanted_; i++) memcpy(bytes_ + 8 * i, p[i], 8);
  count_++;
  return 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **e) {
  return keep(c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, p);
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **p, void **e) {
  return keep(x, y, z, bx, by, bz, shared, p);
}
CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p) {
  if (p == 0xBAD) return CUDA_ERROR_INVALID_VALUE;
  memcpy(out, &p, 8);
  return 0;
}
CUresult cuCtxGetCurrent(CUcontext *c) { *c = (CUcontext)1; return 0; }
CUresult cuCtxSetCurrent(CUcontext c) { return 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { *d = 0; return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { *c = (CUcontext)1; return 0; }
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) { return 0; }
CUresult cuGetErrorString(CUresult r, const char **s) { *s = "an error"; return 0; }
"""


@pytest.mark.skipif(not hasattr(driver, "make_launcher"), reason="this Triton brings a launcher for all signatures")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_driver_is_given_the_same_as_by_tritons_own_launcher(tmp_path: Path):
    (tmp_path / "cuda.c").write_text(RECORDER)
    library = tmp_path / "libcuda.so.1"
    include = f"-I{driver.include_dirs[0]}"
    build = ["gcc", "-shared", "-fPIC", include, "-Wl,-soname,libcuda.so.1", "cuda.c", "-o", library]
    subprocess.run(build, cwd=tmp_path, check=True)
    paths = dict.fromkeys(("LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH"), str(tmp_path))
    env = os.environ | paths | {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "launcher_child.py")],
        env=env | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) > 15
    assert any("arguments" in row["ours"] for row in rows)
    assert any("raised" in row["ours"] for row in rows)
    for row in rows:
        assert row["ours"] == row["stock"], row
