"""Programs in place of the build worker: what a compiler may do, without a compiler."""

import sys
from pathlib import Path

from harness.base.plan import Job
from harness.compile.artifacts.forks import Forks

MAKE_LIBRARY = """
import json, sys, pathlib
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
out = pathlib.Path(job["out"])
"""
GOOD = (
    MAKE_LIBRARY
    + """
(out / "lib.so").write_bytes(b"library")
inputs = [["x", [1], "float32"]]
done = dict(library="lib.so", vdevices=1, inputs=inputs, outputs=1, quirks=[], facts={"kernels": 2}, compile_s=0.5)
(out / "result.json").write_text(json.dumps({"done": done}))
"""
)
REFUSES = (
    MAKE_LIBRARY
    + """
failure = dict(outcome="compile-error", message="Divide by zero", hint="", evidence="trace")
(out / "result.json").write_text(json.dumps({"failure": failure}))
"""
)
REAL_MAIN = """
import pathlib, sys
worker.real_main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
"""
"""The worker itself, for scripts that have changed what it does."""
JOB = Job("compile", "0123456789abcdef", "tiny-opencl-float32-untuned", {"request": {}})


SERVER = """
import runpy, sys
from harness.compile.artifacts import fork_server, worker
fork_server.LOADED = ()
program = sys.argv.pop(1)
worker.real_main = worker.main
def main(job_file, parent):
    sys.argv[1:] = [str(job_file), str(parent)]
    runpy.run_path(program)
    return 0
worker.main = main
sys.exit(fork_server.main(*map(int, sys.argv[1:])))
"""


def forks(folder: Path, script: str) -> Forks:
    """Return forks that run this program with the job's file as its argument."""
    file = folder / "worker.py"
    file.write_text(script)
    return Forks((sys.executable, "-c", SERVER, str(file)))
