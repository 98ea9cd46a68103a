"""The command line. Each command lives in `agentloop.commands`; this file only joins them and owns exit codes."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from agentloop.errors import EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED, EXIT_USAGE, InfrastructureError, UsageError
from agentloop.responses import one_line

ABOUT = (
    "Ask a language model for Triton kernels, judge them with a fuzzing oracle, tell it what failed, and measure how often "
    "naive checks accept a wrong kernel. Without a key: `agentloop run --model offline`; is one kernel file right: "
    "`agentloop judge FILE --task ops/softmax`."
)

LINE = 2000  # most characters of an error's line
REFUSED = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EINVAL)

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
        _refuse_undecodable(sys.argv[1:])
        app()
    except UsageError as error:
        _fail(error, EXIT_USAGE)
    except InfrastructureError as error:
        _fail(error, EXIT_INFRASTRUCTURE)
    except OSError as error:  # a path that the system refuses wherever it is first looked at
        if error.filename is None or error.errno not in REFUSED:
            raise
        _fail(f"{error.filename}: {error.strerror}; name a file or folder that can be used", EXIT_USAGE)
    except KeyboardInterrupt:
        print("interrupted; nothing recorded is lost", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Bytes that are not UTF-8 come as lone surrogates, which no record could hold."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"argument {argument!r} is not UTF-8: rename the file or folder that it names") from None


def _fail(error: object, code: int) -> NoReturn:
    print(f"error: {_shortened(one_line(str(error)))}", file=sys.stderr)
    sys.exit(code)


def _shortened(line: str) -> str:
    """A value that was given may be of any length; what is said of it stands at the line's ends."""
    return line if len(line) <= LINE else f"{line[: LINE // 2]} … {line[-LINE // 2 :]}"


if __name__ == "__main__":
    main()
