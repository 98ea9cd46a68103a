"""A loopback server that answers every request at once: `python -m agentloop.bench.echo FILE` prints its address."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agentloop.authors.server import AuthorServer, Said


class Echo:
    """Says the same kernel every time, numbered, so that no two candidates are equal."""

    kind, fingerprint = "model", "echo"
    models: tuple[str, ...] = ("echo",)

    def __init__(self, source: str) -> None:
        self.source, self.said = source, 0

    def say(self, model: str, messages: Any, parameters: Any) -> Said:
        self.said += 1
        return Said(f"Here is the kernel.\n\n```python\n# {self.said}\n{self.source}\n```\n")


if __name__ == "__main__":
    server = AuthorServer(Echo(Path(sys.argv[1]).read_text()))
    print(server.base_url, flush=True)
    server.serve_forever()
