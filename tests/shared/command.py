"""`adreno-bench` in a process of its own, as a person starts it."""

import os
import subprocess
import sys
from pathlib import Path

from waiting import LONG_S

PROGRAM = (sys.executable, "-c", "from harness.cli import main; main()")


def start(folder: Path, cache: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start it in a folder."""
    return subprocess.Popen(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "ADRENO_BENCH_CACHE": str(cache), "COLUMNS": "200", **environment},
    )


def bench(folder: Path, cache: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and the error stream of a whole command."""
    with start(folder, cache, *words, **environment) as process:
        try:
            out, err = process.communicate(timeout=LONG_S)
        finally:
            process.kill()
    return process.returncode, out, err
