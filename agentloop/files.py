"""Files that survive a kill: append-only JSON lines, each one fsynced write, whole files replaced by a rename, and a
lock on a folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentloop.errors import StorageError, UsageError

GIVEN_BYTES = 1 << 20  # of a file of settings: more is none


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The content of a file, `most` bytes at most. Raises OSError where there is none, where it is larger, and where it is
    a pipe, a device or a folder: reading one may never end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return data


def stored_text(path: Path) -> str | None:
    """A stored text, as far as it is UTF-8; None where the file is gone or none."""
    try:
        return read_regular(path).decode("utf-8", "replace")
    except OSError:
        return None


def stored_object(path: Path) -> dict[str, Any] | None:
    """A stored JSON object; None where the file is gone or damaged."""
    text = stored_text(path)
    return None if text is None else _object(text)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """The file's records and its torn last line (b"" where there is none); an absent file is empty.

    A last line without its newline is torn unless it is a whole object. Any other line that is not a JSON object means
    damage that a kill cannot have done: UsageError naming the line. Nothing is changed.
    """
    try:
        *lines, last = read_regular(path).split(b"\n")
    except FileNotFoundError:
        return [], b""
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    records = []
    for number, line in enumerate(lines, 1):
        record = _object(line)
        if record is None:
            raise UsageError(f"{path} line {number} is damaged; nothing was changed: repair or remove that line")
        records.append(record)
    whole = _object(last)
    return ([*records, whole], b"") if whole is not None else (records, last)


class Log:
    """An append-only file of JSON lines. It is read when made and changed by nothing before `open`."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where the file is damaged."""
        self.path = path
        self.records, self._torn = read_lines(path)
        self._fd = -1

    def open(self) -> None:
        """Open for appending and repair the end that a kill may have left: a torn last line is moved to PATH.torn, a
        whole one gets its newline. Raises StorageError where the file cannot be written."""
        with storing(self.path):
            if self._torn:
                _append(self.path.with_name(self.path.name + ".torn"), self._torn + b"\n")
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            size = os.fstat(self._fd).st_size
            if self._torn:
                os.ftruncate(self._fd, size - len(self._torn))
            elif size and os.pread(self._fd, 1, size - 1) != b"\n":
                os.write(self._fd, b"\n")

    def append(self, record: dict[str, Any]) -> None:
        """Write one line and wait until it is on disk. After a failed write the file is as it was before."""
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        with storing(self.path):
            try:
                _write(self._fd, line)
                os.fsync(self._fd)
            except OSError:
                os.ftruncate(self._fd, size)
                raise

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file at once: readers see the old content or the new, never a part."""
    partial = path.with_name(f".{path.name}.partial")
    with storing(path):
        try:
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                _write(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(partial, path)
            sync_folder(path.parent)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1).encode() + b"\n")


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk: a file's own data does not bring its name along."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def unwritable(path: Path) -> str:
    """Why a run folder could not be written, "" where it can: known before anything slow is started. Changes nothing."""
    place = path
    try:
        place = next(folder for folder in (path, *path.absolute().parents) if folder.exists() or folder.is_symlink())
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(bytes(4096))
            probe.flush()
    except OSError as error:
        return f"cannot write {place}: {error.strerror}"
    return ""


def refuse_unusable(option: str, path: Path) -> None:
    """Raises UsageError, naming the option, where a file could not be written: known before anything slow is started."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder: name a file")
    if not path.parent.exists():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}; make it first")
    reason = unwritable(path.parent)
    if not reason and path.exists() and not os.access(path, os.W_OK):
        reason = f"cannot write {path}"
    if reason:
        raise UsageError(f"{option} {path}: {reason}; name a file that can be written")


def take_lock(path: Path) -> int:
    """An exclusive lock on a folder that ends with the process, however it ends, or with its descriptor. Raises
    UsageError where another process holds it, StorageError where the folder cannot be written."""
    with storing(path):
        fd = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
        os.close(fd)
        raise UsageError(f"{path} is in use by process {holder}; wait for it or stop it") from None
    with contextlib.suppress(OSError):  # a courtesy to the next who asks; on a full disk the lock holds without
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
    return fd


def refuse_locked(path: Path) -> None:
    """The UsageError of `take_lock`, before anything slow is started."""
    os.close(take_lock(path))


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turns the OSError of a write into a StorageError of one line."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}; nothing recorded is lost") from None


def _object(line: str | bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _append(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        _write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
