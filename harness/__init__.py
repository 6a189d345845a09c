"""The host: what to build, building it, judging it. Knows nothing of adb."""

import os
import signal
from importlib import import_module


def main() -> None:
    """Run the command line. Ctrl-C ends the process without a traceback, also while its modules are loaded."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    import_module("harness.cli").main()  # by name: the command line is no part of what compiles
