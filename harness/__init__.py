"""The host: what to build, building it, judging it. Knows nothing of adb."""

import os
import signal


def main() -> None:
    """Run the command line. Ctrl-C ends the process without a traceback, also while its modules are loaded."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from harness.cli import main as run

    run()
