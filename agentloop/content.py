"""Finds and loads content: task files and prompt folders, from a checkout or from an installed wheel.

A task file is loaded from its path under a private module name, so nothing called `tasks` is ever importable. Its folder
is a package under that name: files of a suite may share helpers by `from ._helper import …` (helpers start with "_").
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib
import os
import sys
import traceback
import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from oracle.errors import UsageError
from oracle.schema import Task
from oracle.syntax import parse

PACKAGE = Path(__file__).resolve().parent


def content_dir(name: str) -> Path:
    """Folder of shipped content: `_content/NAME` inside the package if present (a wheel), else NAME beside it."""
    packed = PACKAGE / "_content" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


def load_tasks(extra_dirs: Iterable[str | Path] = ()) -> dict[str, Task]:
    """All tasks by id, ours first, then those of `extra_dirs`; each with `digest` set from its file and helpers.

    A folder holds one folder per suite, or task files themselves. Raises UsageError, naming file and line, for a file
    that does not load, and for an id that is there twice.
    """
    tasks: dict[str, Task] = {}
    origin: dict[str, Path] = {}
    folders = [Path(os.path.realpath(folder)) for folder in (content_dir("tasks"), *map(Path, extra_dirs))]
    for folder, files in [(folder, _task_files(folder)) for folder in folders]:
        root = _private_root(folder)
        for path in files:
            task = _load(path, root)
            if task.id in tasks:
                raise UsageError(f"task {task.id} is defined twice: {origin[task.id]} and {path}; rename one")
            tasks[task.id], origin[task.id] = task, path
    return tasks


def find_tasks(globs: str, tasks: Mapping[str, Task], option: str = "--tasks") -> list[Task]:
    """Tasks that match comma-separated globs over ids, each once, in the order asked for.

    A bare NAME means ops/NAME if that exists, else the only task of that name. Raises UsageError for what matches nothing
    or is ambiguous, with close matches.
    """
    found: dict[str, Task] = {}
    for pattern in filter(None, (part.strip() for part in globs.split(","))):
        found.update((task_id, tasks[task_id]) for task_id in _matches(pattern, tasks, option))
    if not found:
        raise UsageError(f"{option} names no task; `agentloop tasks list` shows all")
    return list(found.values())


def find_task(name: str, tasks: Mapping[str, Task], option: str = "--task") -> Task:
    """The one task that NAME or SUITE/NAME means; raises UsageError as `find_tasks`, or if it matches several."""
    found = find_tasks(name, tasks, option)
    if len(found) > 1:
        some = ", ".join(task.id for task in found[:4])
        raise UsageError(f"{option} {name!r} matches {len(found)} tasks ({some}, …); name one")
    return found[0]


def _matches(pattern: str, tasks: Mapping[str, Task], option: str) -> list[str]:
    exact = pattern if "/" in pattern else f"ops/{pattern}"
    if exact in tasks:
        return [exact]
    matches = [task_id for task_id in tasks if fnmatchcase(task_id, pattern)]
    if not matches and "/" not in pattern:
        matches = [task_id for task_id in tasks if task_id.partition("/")[2] == pattern]
        if len(matches) > 1:
            raise UsageError(f"{option} {pattern!r} is ambiguous: {', '.join(matches)}; name one with its suite")
    if not matches:
        near = [task_id for task_id in tasks if task_id.partition("/")[2] == pattern.rpartition("/")[2]]
        names = {task_id.partition("/")[2]: task_id for task_id in sorted(tasks, reverse=True)}
        near += [names[name] for name in difflib.get_close_matches(pattern.rpartition("/")[2], names, 3)]
        hint = f"; did you mean {', '.join(dict.fromkeys(near))}?" if near else ""
        raise UsageError(f"{option} {pattern!r} matches no task{hint}; `agentloop tasks list` shows all")
    return matches


def _task_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"--task-dir {folder} is not a folder; it must hold task files or folders of them")
    files = [*sorted(folder.glob("*.py")), *sorted(folder.glob("*/*.py"))]
    files = [path for path in files if not path.name.startswith("_") and path.is_file()]
    if not files:
        raise UsageError(f"--task-dir {folder} holds no task file (SUITE/NAME.py with TASK = Task(...))")
    return files


def _load(path: Path, root: str) -> Task:
    parts = [] if path.parent == Path(sys.modules[root].__path__[0]) else [path.parent.name]
    try:
        module = importlib.import_module(".".join([root, *parts, path.stem]))
    except Exception as error:
        raise UsageError(f"task file {path}:{_line(error, path)} does not load: {_summary(error)}") from None
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise UsageError(f"task file {path}:1 must define TASK = Task(...) (oracle.schema)")
    return replace(task, digest=_digest(path))


def _private_root(folder: Path) -> str:
    """A fresh package of a private name whose submodules are the folder's files; forgets what was loaded before."""
    root = f"_agentloop_content_{hashlib.blake2b(str(folder).encode(), digest_size=6).hexdigest()}"
    for name in [name for name in sys.modules if name == root or name.startswith(root + ".")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    package = types.ModuleType(root)
    package.__path__ = [str(folder)]
    sys.modules[root] = package
    return root


def _digest(path: Path) -> str:
    """blake2b over the file and, in order of name, the helpers it rests on (`from ._helper import …`, theirs included)."""
    digest = hashlib.blake2b(path.read_bytes(), digest_size=16)
    for helper in sorted(_helpers(path, set())):
        digest.update(helper.read_bytes())
    return digest.hexdigest()


def _helpers(path: Path, seen: set[Path]) -> set[Path]:
    """Adds to `seen` the helpers beside a file that it imports, and those that they import."""
    for node in ast.walk(parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            helper = path.with_name(node.module + ".py")
            if helper not in seen:
                seen.add(helper)
                _helpers(helper, seen)
    return seen


def _line(error: Exception, path: Path) -> int:
    """Line of the task file where the error arose: the syntax error's own, else the deepest frame in the file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == str(path)), 1)


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
