"""Sources are parsed from several threads at once, without CPython's confusion of one thread's depth with another's."""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
from pathlib import Path

from oracle.syntax import parse

ROOT = Path(__file__).parents[2]
SOURCES = [path.read_text() for path in sorted((ROOT / "oracle" / "corpus" / "kernels" / "seed").glob("*.py"))]
IN_A_PROCESS_OF_ITS_OWN = ("oracle/worker/", "oracle/interpreter/", "oracle/corpus/kernels/")


class Cycle:
    """Garbage whose finaliser lets another thread run in the middle of a parse."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(300))


def test_threads_do_not_confuse_the_parser() -> None:
    """With `ast.parse` in place of `parse` this fails within a second on CPython 3.11.7."""
    errors: list[BaseException] = []
    end = time.monotonic() + 3

    def work() -> None:
        try:
            while time.monotonic() < end:
                for source in SOURCES:
                    _ = [Cycle() for _ in range(5)]
                    parse(source)
        except BaseException as error:
            errors.append(error)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    assert errors == []


def test_whatever_has_threads_parses_in_one_place() -> None:
    for path in [*ROOT.glob("oracle/**/*.py"), *ROOT.glob("agentloop/**/*.py")]:
        name = str(path.relative_to(ROOT))
        if name != "oracle/syntax.py" and not name.startswith(IN_A_PROCESS_OF_ITS_OWN):
            assert not re.search(r"\bast\.(parse|literal_eval)\(", path.read_text()), name
