"""Content: where it is found, how task files are loaded, and what globs mean."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agentloop.content import content_dir, find_task, find_tasks, load_tasks
from oracle.errors import UsageError
from oracle.well_formed import complaints

GOOD = """
from oracle.schema import Dim, Form, Task, Tensor
{extra}
TASK = Task(suite="{suite}", name="{name}", signature="{name}(x)", contract="x", dims={{"N": Dim((1,), 4)}},
            forms=(Form("only", (Tensor("x", ("N",)),)),), reference=lambda x: x)
"""


def write(folder: Path, suite: str, name: str, extra: str = "") -> Path:
    path = folder / suite / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(GOOD.format(suite=suite, name=name, extra=extra))
    return path


def test_content_stands_beside_the_package_or_inside_it(tmp_path: Path) -> None:
    assert content_dir("tasks").joinpath("ops", "softmax.py").is_file()
    package = tmp_path / "agentloop"
    shutil.copytree(Path(__file__).parents[2] / "agentloop", package)
    (package / "_content" / "tasks").mkdir(parents=True)
    write(package / "_content" / "tasks", "packed", "only")
    oracle = Path(__file__).parents[2]
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(oracle)!r}]\n"
    code += "from agentloop.content import load_tasks; print(*load_tasks())"
    ran = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["packed/only"]


def test_loading_makes_no_module_named_tasks() -> None:
    code = "import sys; from agentloop.content import load_tasks; load_tasks()\n"
    code += "assert not {'tasks', 'ops', 'seed', 'softmax'} & {name.partition('.')[0] for name in sys.modules}"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


def test_extra_folders_add_suites_and_their_helpers_count_in_the_digest(tmp_path: Path) -> None:
    write(tmp_path, "mine", "one", "from ._shared import SIZE")
    write(tmp_path, "mine", "two")
    (tmp_path / "mine" / "_shared.py").write_text("SIZE = 1\n")
    before = load_tasks([tmp_path])
    assert {"mine/one", "mine/two", "ops/softmax"} <= set(before)
    assert load_tasks([tmp_path])["mine/one"].digest == before["mine/one"].digest
    (tmp_path / "mine" / "_shared.py").write_text("SIZE = 22\n")
    after = load_tasks([tmp_path])
    assert after["mine/one"].digest != before["mine/one"].digest
    assert after["mine/two"].digest == before["mine/two"].digest


def test_a_folder_may_hold_task_files_themselves(tmp_path: Path) -> None:
    assert "mine/one" in load_tasks([write(tmp_path, "mine", "one").parent])


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("x = 1\nTASK = = 2\n", 2, "SyntaxError"),
        ("\n\nraise ValueError('no good')\n", 3, "no good"),
        ("import nothing_of_this_name\n", 1, "nothing_of_this_name"),
        ("TASK = 3\n", 1, "TASK = Task"),
        ("from oracle.schema import Dim\n\nDim((0,), 1)\n", 3, "positive"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(UsageError) as error:
        load_tasks([tmp_path])
    assert f"broken.py:{line} " in str(error.value)
    assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no task file"):
        load_tasks([tmp_path])
    with pytest.raises(UsageError, match="is not a folder"):
        load_tasks([tmp_path / "missing"])
    write(tmp_path, "ops", "softmax")
    with pytest.raises(UsageError, match="ops/softmax is defined twice"):
        load_tasks([tmp_path])


TASKS = load_tasks()


def ids(globs: str) -> list[str]:
    return [task.id for task in find_tasks(globs, TASKS)]


def test_globs() -> None:
    assert ids("softmax") == ["ops/softmax"]
    assert ids("seed/softmax") == ["seed/softmax"]
    assert ids("l2_norm") == ["seed/l2_norm"], "a bare name that ops lacks is the only task of that name"
    assert len(ids("seed/*")) == 13
    assert len(ids("ops/*")) == 30
    assert ids("ops/var, seed/*norm, var") == ["ops/var", "seed/l2_norm", "seed/layer_norm", "seed/rms_norm"]


@pytest.mark.parametrize(
    ("globs", "words"),
    [
        ("sofmax", ["--tasks 'sofmax'", "ops/softmax", "agentloop tasks list"]),
        ("op/softmax", ["ops/softmax"]),
        ("ops/nothing*", ["matches no task"]),
        ("softmax,seed/nix", ["seed/nix"]),
        ("", ["names no task"]),
        (" , ", ["names no task"]),
    ],
)
def test_what_matches_nothing_is_refused_with_a_hint(globs: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        ids(globs)
    for word in words:
        assert word in str(error.value)


def test_a_bare_name_in_two_other_suites_is_ambiguous(tmp_path: Path) -> None:
    write(tmp_path, "mine", "l2_norm")
    with pytest.raises(UsageError, match="ambiguous: seed/l2_norm, mine/l2_norm"):
        find_tasks("l2_norm", load_tasks([tmp_path]))


def test_one_task() -> None:
    assert find_task("gelu", TASKS).id == "ops/gelu"
    with pytest.raises(UsageError, match=r"--task 'seed/\*' matches 13 tasks"):
        find_task("seed/*", TASKS)


@pytest.mark.parametrize("raised", ["SystemExit(0)", "BaseException('no')", "GeneratorExit"])
def test_a_file_cannot_end_the_command(tmp_path: Path, raised: str) -> None:
    (tmp_path / "x.py").write_text(f"raise {raised}")
    with pytest.raises(UsageError, match=r"x\.py:1 does not load"):
        load_tasks([tmp_path])


def test_every_field_of_a_task_is_looked_at() -> None:
    right = load_tasks()["seed/relu"]
    assert not list(complaints(right))
    wrong = {
        "suite": ("", "a/b", 3),
        "name": ("", "a b", "x\n", "*", "a" * 300),
        "entry": ("f(", 3),
        "signature": ("", 3, "relu(", "lambda x: x", "relu(x); import os", "\0"),
        "contract": ("", None),
        "forms": ((), []),
        "outputs": ((), 3),
        "reference": (None, 3),
        "scale": (3,),
        "regimes": (3, ("nope",), "normal"),
        "layouts": (("nope",),),
        "dtypes": (("float31",),),
    }
    for field, values in wrong.items():
        for value in values:
            said = list(complaints(replace(right, **{field: value})))
            assert len(said) == 1, (field, value, said)
            assert said[0].startswith(field)
