"""Authors without a network: `offline` (a simulation) and `recorded:PATH` (answers that real models once gave).

Both stand behind a real OpenAI-compatible server on the loopback interface, so that the whole client path runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from agentloop.authors.offline import OfflineAuthor
from agentloop.authors.recorded import RecordedAuthor
from agentloop.authors.server import AuthorServer, Speaker
from agentloop.errors import UsageError

__all__ = ["AuthorServer", "RunningAuthor", "Speaker", "speaker", "start"]

RECORDED = "recorded:"


@dataclass
class RunningAuthor:
    """A built-in author being served; a context manager that stops its server.

    `name` is what request keys hold in place of the port; `kind` is "offline" or "recorded"; `models` are the model
    names that requests may ask for.
    """

    base_url: str
    name: str
    kind: str
    models: tuple[str, ...]
    server: AuthorServer

    def close(self) -> None:
        self.server.close()

    def __enter__(self) -> RunningAuthor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def speaker(spec: str, seed: int = 0) -> Speaker:
    """The author that "offline" or "recorded:PATH" names. Raises UsageError for anything else and for a bad PATH."""
    if spec == "offline":
        return OfflineAuthor(seed)
    if spec.startswith(RECORDED):
        return RecordedAuthor(spec.removeprefix(RECORDED))
    raise UsageError(f"no built-in author is called {spec!r}; it may be offline or recorded:PATH")


def start(spec: str, seed: int = 0, port: int = 0) -> RunningAuthor:
    """Serve a built-in author on 127.0.0.1, at a free port unless one is given.

    `seed` is the run's: the offline author's mistakes follow from it and from what each request holds.
    """
    author = speaker(spec, seed)
    server = AuthorServer(author, port)
    server.start()
    return RunningAuthor(server.base_url, spec, author.kind, author.models, server)
