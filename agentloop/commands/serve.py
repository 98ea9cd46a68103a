"""`agentloop serve`: a built-in author behind an OpenAI-compatible endpoint on the loopback interface."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentloop.authors import AuthorServer, speaker
from agentloop.errors import UsageError

AUTHORS = ("offline", "recorded")


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    author: Annotated[str, typer.Argument(metavar="offline|recorded", help="offline is a simulation, no model.")],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8000,
    path: Annotated[Path | None, typer.Option(help="recorded: answers-MODEL.jsonl, or a folder of them.")] = None,
    seed: Annotated[int, typer.Option(help="offline: seed of its mistakes.")] = 0,
) -> None:
    """Serve a built-in author until interrupted; any OpenAI client can ask it, for the models that the first line names."""
    if author not in AUTHORS:
        raise UsageError(f"AUTHOR must be one of {', '.join(AUTHORS)}, not {author!r}")
    if (path is not None) != (author == "recorded"):
        raise UsageError("--path PATH belongs to `serve recorded`: a file answers-MODEL.jsonl or a folder of them")
    if not 0 <= port <= 65535:
        raise UsageError(f"--port must be from 0 to 65535, not {port}")
    server = AuthorServer(speaker("offline" if path is None else f"recorded:{path}", seed), port)
    try:
        print(f"{server.base_url}  models: {', '.join(server.models)}", flush=True)
        server.serve_forever()
    finally:
        server.close()
