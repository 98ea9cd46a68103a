"""The hostile suite in other circumstances than those of whoever starts it.

    python -m tests.hostile.ways user         as an ordinary user (started by root)
    python -m tests.hostile.ways container    where namespaces and mounts are refused, as in most containers

Further arguments go to pytest. Both ways may be named, separated by a comma. Where Python or this checkout lie below a
private folder, an ordinary user sees them at their places all the same, in a mount namespace of this process's own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from oracle.worker import seccomp, system

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 23456  # an id that owns nothing
REFUSED = {"unshare", "setns", "mount", "umount2", "pivot_root", "fsopen", "fsmount", "move_mount", "open_tree"}


def main() -> None:
    ways = set(sys.argv[1].split(",")) if len(sys.argv) > 1 else set()
    if not ways or not ways <= {"user", "container"}:
        sys.exit("name a way: user, container, or both separated by a comma")
    if ways == {"user"} and os.geteuid() != 0:
        sys.exit(print("not root: whoever runs the tests is an ordinary user already"))
    if "user" in ways:
        become_ordinary()
    if "container" in ways:
        refuse_namespaces()
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/hostile", *sys.argv[2:]]
    os.execv(sys.executable, pytest)


def become_ordinary() -> None:
    """Give up root for good. The home is a new folder that the user may write to."""
    if os.geteuid() != 0:
        return
    try:
        show([ROOT, Path(sys.prefix), Path(sys.base_prefix)])
    except OSError as error:
        sys.exit(
            f"Python or this checkout lie below a private folder, and cannot be shown to an ordinary user: {error}"
        )
    home = tempfile.mkdtemp(prefix="ordinary-")
    os.chown(home, ORDINARY, ORDINARY)
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)
    os.environ.update(HOME=home, USER="ordinary", TMPDIR="/tmp", PYTHONDONTWRITEBYTECODE="1")


def show(paths: Iterable[Path]) -> None:
    """Let others reach the paths: a private folder above one is covered by an empty one that holds the paths alone."""
    hidden = {path: closed for path in paths if (closed := _private_folder(path))}
    if not hidden:
        return
    system.unshare(system.CLONE_NEWNS)
    system.mount(None, "/", None, system.MS_REC | system.MS_PRIVATE)
    stage = Path(tempfile.mkdtemp())
    system.mount("tmpfs", str(stage), "tmpfs", 0, "mode=0755")
    kept = {path: stage / str(index) for index, path in enumerate(hidden)}
    for path, place in kept.items():
        place.mkdir()
        system.mount(str(path), str(place), None, system.MS_BIND | system.MS_REC)
    for folder in set(hidden.values()):
        system.mount("tmpfs", str(folder), "tmpfs", 0, "mode=0755")
    for path, place in kept.items():
        path.mkdir(parents=True, exist_ok=True)
        system.mount(str(place), str(path), None, system.MS_BIND | system.MS_REC)


def _private_folder(path: Path) -> Path | None:
    """The outermost folder above a path that is closed to others."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)


def refuse_namespaces() -> None:
    """From now on the kernel refuses new namespaces and mounts, here and in every process below."""
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(allow=seccomp.names() - REFUSED)


if __name__ == "__main__":
    main()
