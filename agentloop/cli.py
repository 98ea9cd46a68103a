"""The command line. Each command lives in `agentloop.commands`; this file only joins them and owns exit codes."""

from __future__ import annotations

import importlib
import sys

import typer

from agentloop.errors import EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED, EXIT_USAGE, InfrastructureError, UsageError

ABOUT = (
    "Ask a language model for Triton kernels, judge them with a fuzzing oracle, tell it what failed, and measure how often "
    "naive checks accept a wrong kernel. Without a key: `agentloop run --model offline`; is one kernel file right: "
    "`agentloop judge FILE --task ops/softmax`."
)

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=ABOUT)

# In the order that `agentloop --help` shows them; each module has `register(app)`.
COMMANDS = (
    "run",
    "report",
    "show",
    "compare",
    "rescore",
    "judge",
    "validate",
    "tasks",
    "tasks_check",
    "prompts",
    "serve",
    "bench",
    "doctor",
)

for _name in COMMANDS:
    importlib.import_module(f"agentloop.commands.{_name}").register(app)


def main() -> None:
    """Run one command; turn expected errors into one line on stderr and the documented exit code."""
    try:
        app()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except InfrastructureError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_INFRASTRUCTURE)
    except KeyboardInterrupt:
        print("interrupted; nothing recorded is lost", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
