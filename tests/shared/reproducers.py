"""Runs reproducers of quirks, each in a fork of one process that has TVM loaded, which saves its imports.

It imports nothing of ours, so that the Python of another release's environment can run it.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

TIMEOUT_S = 1500.0
_MAIN = "import sys; sys.path.append(sys.argv[1]); import reproducers; reproducers.main()"


def answers_of(python: Path, scripts: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Same as `answers`, of the TVM in the environment of another Python."""
    words = [str(python), "-I", "-c", _MAIN, str(Path(__file__).parent)]
    done = subprocess.run(
        words, input=json.dumps(dict(scripts)), stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S
    )
    return {name: (code, line) for name, (code, line) in json.loads(done.stdout.splitlines()[-1]).items()}


def main() -> None:
    """Read scripts from standard input and print their answers as the last line."""
    sys.stdout.write(json.dumps(answers(json.load(sys.stdin))) + "\n")


def answers(scripts: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> dict[str, tuple[int, str]]:
    """Exit code and last line of each program, by its name."""
    pool = multiprocessing.get_context("forkserver")
    pool.set_forkserver_preload(["numpy", "onnx.reference", "tvm.relax.frontend.onnx"])
    with tempfile.TemporaryDirectory() as folder, pool.Pool(2, maxtasksperchild=1) as workers:
        pending = {}
        for name, script in scripts.items():
            file = Path(folder) / f"{name}.py"
            file.write_text(script, encoding="utf-8")
            pending[name] = workers.apply_async(_run, (str(file),))
        return {name: one.get(timeout_s) for name, one in pending.items()}


def _run(file: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(file, run_name="__main__")
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception as error:
            return 1, f"{type(error).__name__}: {error}"
    return code, (printed.getvalue().strip().splitlines() or [""])[-1]
