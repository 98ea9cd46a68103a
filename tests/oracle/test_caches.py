"""Folders of compiled kernels: one per candidate, the oldest idle one makes room, none can fill the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.worker.caches import KEPT, Caches
from oracle.worker.isolation import missing_protection
from oracle.worker.policies import POLICIES

FILL = """
import os, sys
from oracle.worker.caches import Caches
folder = Caches(sys.argv[1], 1 << 20, mounted=True).folder(1, ())
try:
    for index in range(100):
        with open(f"{folder}/{index}", "wb") as file:
            file.write(bytes(1 << 18))
except OSError as error:
    print(index, error.errno)
"""


def test_a_candidate_keeps_its_folder_and_shares_it_with_nobody(tmp_path: Path):
    caches = Caches(str(tmp_path), 1 << 20, mounted=False)
    mine = caches.folder(1, ())
    assert caches.folder(2, ()) != mine
    assert caches.folder(1, ()) == mine
    assert os.stat(mine).st_mode & 0o077 == 0


def test_the_folder_idle_for_longest_makes_room(tmp_path: Path):
    caches = Caches(str(tmp_path), 1 << 20, mounted=False)
    folders = [caches.folder(number, ()) for number in range(KEPT)]
    assert len(os.listdir(tmp_path)) == KEPT
    caches.folder(1, ())
    caches.folder(KEPT, (folders[0],))
    assert Path(folders[0]).is_dir()  # in use
    assert Path(folders[1]).is_dir()  # used since
    assert not Path(folders[2]).exists()
    assert len(os.listdir(tmp_path)) == KEPT


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_folder_is_bounded(tmp_path: Path):
    command = [sys.executable, "-c", FILL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this container may not mount")
    assert done.stdout.split() == ["4", "28"], done  # ENOSPC after 4 files of 256 KiB
    assert os.listdir(tmp_path / "cache-1") == []  # the mount was that process's alone


def test_a_backend_that_opens_sockets_needs_a_network_of_its_own():
    files = ["landlock", "seccomp"]
    assert missing_protection(files, POLICIES["interpreter"]) == []
    assert missing_protection([*files, "network_namespace"], POLICIES["cuda"]) == []
    assert missing_protection(files, POLICIES["cuda"]) == ["network access is not blocked (network_namespace)"]
