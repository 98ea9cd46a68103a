"""How a long command ends when it is told to."""

from __future__ import annotations

import signal


def terminate_as_interrupt() -> None:
    """SIGTERM ends a run as Ctrl-C does, also in the background, where a shell has Ctrl-C ignored: records closed,
    candidates' processes killed."""

    def stop(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)
