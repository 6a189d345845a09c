"""The host: what to build, building it, judging it. Knows nothing of adb."""

import gc
import os
import signal
from importlib import import_module


def main() -> None:
    """Run the command line. Ctrl-C ends the process without a traceback, also while its modules are loaded."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    gc.set_threshold(50_000)  # to look for garbage among what is imported is a tenth of the time that a command takes
    import_module("harness.cli").main()  # by name: the command line is no part of what compiles
