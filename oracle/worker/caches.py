"""Folders for compiled kernels: one per candidate, shared by its processes and by nobody else's (a shared cache could be
poisoned). Each is a small file system in memory where the machine allows that, so that none can fill the disk."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

from oracle.worker import isolation, system

KEPT = 64  # candidates, at most; more only while processes use them


class Caches:
    """`mounted`: whether this process may mount; it then lives in a mount namespace of its own."""

    def __init__(self, base: str, folder_bytes: int, mounted: bool) -> None:
        self._base, self._bytes, self._mounted = base, folder_bytes, mounted
        self._folders: dict[str, None] = {}  # the least recently used first
        if mounted:
            system.unshare(system.CLONE_NEWNS)
            system.mount(None, "/", None, system.MS_REC | system.MS_PRIVATE)

    def folder(self, candidate: int, used: Collection[str]) -> str:
        """The candidate's folder; it is made where it is new, and others make room but for those `used` just now."""
        folder = os.path.join(self._base, f"cache-{candidate}")
        if folder not in self._folders:
            idle = [other for other in self._folders if other not in used]
            for other in idle[: max(0, len(self._folders) + 1 - KEPT)]:
                self._remove(other)
            os.mkdir(folder, 0o700)
            if self._mounted:
                flags = system.MS_NOSUID | system.MS_NODEV
                system.mount("tmpfs", folder, "tmpfs", flags, f"size={self._bytes},nr_inodes=65536,mode=0700")
        self._folders.pop(folder, None)
        self._folders[folder] = None
        return folder

    def _remove(self, folder: str) -> None:
        del self._folders[folder]
        if self._mounted:
            with suppress(OSError):
                system.unmount(folder)
        isolation.remove_tree(folder)
