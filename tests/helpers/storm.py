"""A run of 300 attempts that is interrupted again and again, while its server misbehaves and its clock jumps.

`python -m tests.helpers.storm SCENE RUNS SEED`, inside a mount namespace of its own (`command_line` says how), makes RUNS
such runs. Each is struck once by every one of `BLOWS`, in random order at random moments, then finished, and compared with
a run that nothing met. Prints what happened as JSON; fails at the first thing that must not be.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.folders import attempts, check_readable, key_of, requests, stored
from tests.helpers.servers import Behaviour, Handler, says, serving
from tests.helpers.sitting import digest, graded
from tests.helpers.ways import of

BLOWS = ("SIGKILL", "SIGINT", "full disk", "read-only folder")
CONCURRENCY = 6
ENDS = {"SIGKILL": {-9}, "SIGINT": {130}, "full disk": {3}, "read-only folder": {3}}
COMMON = ("--concurrency", str(CONCURRENCY), "--workers", "2", "--timeout", "1")
KERNELS = Path(__file__).parents[2] / "oracle" / "corpus" / "kernels" / "seed"
YEAR = 365 * 86400.0
RETRIED, OWED, ANSWERED = (list(of(outcome).values()) for outcome in ("retried", "owed", "answered"))
ONE_IN = {"retried": 8, "owed": 100}  # requests of a storm


def command_line(scene: str, runs: int, seed: int) -> list[str]:
    """The storm in a mount namespace: its disk is a small tmpfs that it may fill, cover and throw away."""
    enter = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    return [*enter, sys.executable, "-m", "tests.helpers.storm", scene, str(runs), str(seed)]


def kernels(handler: Handler, body: dict[str, Any]) -> None:
    """Answers for the real judge: of eight, five wrong kernels, two right ones and none."""
    asked = body["messages"][1]["content"]
    name = next(name for name in ("leaky_relu", "gelu", "silu") if f"{name}(" in asked)
    files = sorted(KERNELS.glob(f"{name}__bug*.py")) * 5 + sorted(KERNELS.glob(f"{name}__control*.py")) * 2
    chosen = digest(body)[0] % 8
    code = f"```python\n{files[chosen].read_text()}\n```" if chosen < len(files) else "I would rather not."
    says(code)(handler, body)


@dataclass(frozen=True)
class Scene:
    """What is run: `author` answers, the real judge judges unless `judge_seconds` has the stand-in take its place;
    `fewest` attempts must come of it; `moments`: within how many seconds a blow falls."""

    author: Behaviour
    judge_seconds: float | None
    tasks: str
    samples: int
    fewest: int
    moments: float = 1.0

    @property
    def options(self) -> tuple[str, ...]:
        words = {"model": "m", "tasks": self.tasks, "samples": self.samples, "rounds": 3, "domain": "core"}
        return tuple(str(word) for name, value in words.items() for word in (f"--{name}", value))


SCENES = {
    "quick": Scene(graded, 0.004, "seed/*", 9, 300),
    "sample": Scene(graded, 0.004, "seed/relu,seed/gelu", 7, 30, 0.1),
    "real": Scene(kernels, None, "seed/gelu,seed/silu,seed/leaky_relu", 44, 300, 10.0),
}


class Weather:
    """The server: its answers follow from the request alone, some of them poor; its faults, in a storm, from chance."""

    def __init__(self, author: Behaviour, seed: int) -> None:
        self.author, self.storm, self.endpoint, self.chance = author, False, "", random.Random(seed)
        self.arrivals: list[str] = []
        self.struck: Counter[str] = Counter()
        self._guard, self._active = threading.Lock(), 0

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        with self._guard:
            self.arrivals.append(key_of(self.endpoint, body))
            self._active += 1
            name = next((name for name, often in ONE_IN.items() if self.storm and not self.chance.randrange(often)), "")
            self.struck[name] += 1
            way = self.chance.choice(RETRIED if name == "retried" else OWED) if name else None
        try:
            time.sleep(0.02)
            (way.behaviour if way else self.answer)(handler, body)
        finally:
            with self._guard:
                self._active -= 1

    def answer(self, handler: Handler, body: dict[str, Any]) -> None:
        poor = digest(body)[1] % 32
        (ANSWERED[poor].behaviour if poor < len(ANSWERED) else self.author)(handler, body)

    def settle(self) -> None:
        """Until all that arrived was answered: a killed client's last requests may still be on their way."""
        time.sleep(0.05)
        while self._active:
            time.sleep(0.01)


class Disk:
    """A small disk that can be full or read-only. The log files that a run holds open stay writable when it turns
    read-only, as with a folder whose rights were taken away."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs, self._filler = path, path / "runs", path / "filler"
        _do("mount", "-t", "tmpfs", "-o", "size=96m", "none", str(path))
        self.runs.mkdir()

    def strike(self, blow: str) -> None:
        if blow == "read-only folder":
            _do("mount", "--bind", str(self.runs), str(self.runs))
            _do("mount", "-o", "remount,bind,ro", str(self.runs))
            return
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 20)):
                    pass
            except OSError:
                pass

    def heal(self, blow: str) -> None:
        if blow == "read-only folder":
            _do("umount", "-l", str(self.runs))
        else:
            self._filler.unlink()


class Run:
    """One run, from its first sitting to its end."""

    def __init__(self, scene: Scene, name: str, disk: Disk, weather: Weather, seed: str, tally: Counter[str]) -> None:
        self.scene, self.path, self.disk, self.weather, self.tally = scene, disk.runs / name, disk, weather, tally
        self.chance = random.Random(seed)
        self.output = disk.path.parent / "output"
        self.recorded: dict[str, dict[str, Any]] = {}
        self.known: set[str] = set()
        self.doubts: list[str] = []

    def blow(self, blow: str) -> None:
        """A sitting, struck at a random moment; where disk or folder was struck, a second that finds it so."""
        process = self.start()
        if self.path.exists() and self.chance.random() < 0.7:  # amid requests; else while it opens or makes the folder
            seen = len(self.weather.arrivals)
            _wait(lambda: len(self.weather.arrivals) > seen or not process.is_alive())
        process.join(self.chance.uniform(0.0, self.scene.moments))
        whole = (self.path / "config.json").exists()
        if blow.startswith("SIG"):
            if process.pid and process.is_alive():
                os.kill(process.pid, getattr(signal, blow))
        else:
            self.disk.strike(blow)
        code = self.end(process)
        ended = code in ({0, 3} if blow.startswith("SIG") else {0})
        assert ended or code in (ENDS[blow] if whole else ENDS[blow] | {2}), (blow, code, self.said())
        self.tally["ended before" if ended else blow] += 1
        if blow.startswith("SIG"):
            return
        assert ended or "cannot write" in self.said(), self.said()
        code = self.end(self.start())
        assert code == (3 if (self.path / "config.json").exists() else 2), (blow, code, self.said())
        assert re.search(r"error: .*cannot write .*(No space left|Read-only file system)", self.said()), self.said()
        self.disk.heal(blow)

    def finish(self) -> None:
        """Sittings until nothing is owed."""
        for _ in range(8):
            if self.end(self.start()) == 0:
                return
        raise AssertionError(f"the run does not come to its end: {self.said()}")

    def start(self) -> Any:
        """A sitting: `run` where there is no run yet, else `resume`. Its clock jumps while it goes."""
        fresh = not (self.path / "config.json").exists()
        place = ("--runs-dir", str(self.path.parent), "--name", self.path.name, "--base-url", self.weather.endpoint)
        words = ["run", *self.scene.options, *COMMON, *place] if fresh else ["resume", str(self.path), *COMMON]
        clock = self.chance.uniform(-YEAR, YEAR) if self.weather.storm else 0.0
        self.mark = len(self.weather.arrivals)
        self.output.unlink(missing_ok=True)
        process = SITTINGS.Process(target=_sitting, args=(words, self.output, self.scene.judge_seconds, clock))
        process.start()
        _wait(lambda: "ready" in self.said() or not process.is_alive())
        return process

    def end(self, process: Any) -> int:
        """Its exit code, after a look at what it did and left."""
        process.join(120)
        assert not process.is_alive(), f"hangs: {self.said()}"
        self.weather.settle()
        said = self.said()
        assert "Traceback" not in said, said
        again = set(self.weather.arrivals[self.mark :]) & self.known
        assert not again, f"requested although stored: {again}"
        if "attempts are recorded" in said:
            listed = re.search(r"requests in doubt .*: (\d+): (.*)", said)
            assert (listed[2].split(", ") if listed else []) == self.doubts, (listed, self.doubts)
        if self.path.exists():
            self.look()
        return process.exitcode

    def look(self) -> None:
        """Nothing that was recorded is lost, changed or there twice; what is in doubt is bounded."""
        check_readable(self.path)
        now = attempts(self.path)
        assert {name: now.get(name) for name in self.recorded} == self.recorded
        self.recorded, self.known = now, stored(self.path)
        lasts = {key: [r["event"] for r in rows if r["event"] != "retry"] for key, rows in requests(self.path).items()}
        sent = [key for key, events in lasts.items() if events[-1] == "sent" and key not in self.known]
        assert len(sent) <= CONCURRENCY
        self.tally["left in doubt"] += len(sent)
        self.doubts = [key for key, events in lasts.items() if events[-1] == "in_doubt" or key in sent]

    def compare(self, calm: dict[str, dict[str, Any]], first: int) -> None:
        """With the run that nothing met; and the log with what reached the server, from arrival `first` on."""
        assert self.recorded == calm
        assert self.known == {row["response_id"] for row in calm.values()}
        assert not any(row["infrastructure_error"] for row in self.recorded.values())
        asked = Counter(self.weather.arrivals[first:])
        lines = requests(self.path)
        assert set(asked) <= set(lines)
        for key, rows in lines.items():
            events = Counter(row["event"] for row in rows)
            tries = events["sent"] + events["retry"]
            perhaps = events["in_doubt"] + sum(
                "--timeout" in row.get("reason", "") for row in rows
            )  # may not have left
            assert tries - perhaps <= asked[key] <= tries, f"{key}: {asked[key]} arrived, {rows} logged"
            self.tally.update(retries=events["retry"])
        self.tally.update(requests=asked.total(), attempts=len(self.recorded))

    def said(self) -> str:
        return self.output.read_text() if self.output.exists() else ""


def _sitting(words: list[str], output: Path, judge_seconds: float | None, clock: float) -> None:
    from tests.helpers import command

    command.sitting(words, output, judge_seconds, clock)


SITTINGS = multiprocessing.get_context("forkserver")


def main(scene: Scene, runs: int, seed: int) -> dict[str, Any]:
    os.environ["OPENAI_API_KEY"] = "none"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    SITTINGS.set_forkserver_preload(["tests.helpers.command"])
    folder, weather, tally = Path(tempfile.mkdtemp()), Weather(scene.author, seed), Counter[str]()
    (folder / "disk").mkdir()
    disk = Disk(folder / "disk")
    started = time.monotonic()
    with serving(weather) as server:
        weather.endpoint = server.base_url
        calm = Run(scene, "calm", disk, weather, "", Counter())
        calm.finish()
        assert len(calm.recorded) >= scene.fewest
        weather.storm = True
        for number in range(runs):
            run, first = Run(scene, f"run{number}", disk, weather, f"{seed}:{number}", tally), len(weather.arrivals)
            for blow in run.chance.sample(BLOWS, len(BLOWS)):
                run.blow(blow)
            run.finish()
            run.compare(calm.recorded, first)
            shutil.rmtree(run.path)
    return {
        "runs": runs,
        "seconds": round(time.monotonic() - started),
        **tally,
        "faults of the server": {**weather.struck},
    }


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _wait(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.005)


if __name__ == "__main__":
    print(json.dumps(main(SCENES[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])), indent=1))
