"""The wheel holds its content: installed in a fresh environment, it lists tasks and prompts from anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {"agentloop", "oracle"}


def test_an_installed_wheel_lists_tasks_and_prompts(tmp_path: Path):
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        top = {name.partition("/")[0] for name in archive.namelist()}
        assert not [name for name in archive.namelist() if "__pycache__" in name]
    assert {name for name in top if not name.endswith(".dist-info")} == TOP_LEVEL

    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    # what the wheel needs is installed already: the fresh environment borrows it, the project itself it must not see
    (site,) = environment.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "borrowed.pth").write_text(packages)

    def told(*arguments: str) -> str:
        python = environment / "bin" / "python"
        code = "import sys; sys.path[:] = [p for p in sys.path if p not in sys.argv[1].split(':')]; del sys.argv[1]; "
        code += "from agentloop.cli import main; main()"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        ended = subprocess.run(
            [str(python), "-c", code, str(ROOT), *arguments], capture_output=True, text=True, cwd="/", env=clean
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    listed = json.loads(told("tasks", "list", "--json"))
    ids = {row["id"] for row in listed}
    assert {"seed/softmax", "ops/attention", "tritonbench_t/std"} <= ids
    assert "zero_shot" in told("prompts", "list")
    where = subprocess.run(
        [str(environment / "bin" / "python"), "-c", "import agentloop; print(agentloop.__file__)"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert str(site) in where.stdout


def test_an_editable_install_holds_no_copy_of_the_content(tmp_path: Path):
    """It would be stale, and candidates could read the references in it."""
    code = "from hatchling.build import build_editable; import sys; print(build_editable(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "_content" in name]
