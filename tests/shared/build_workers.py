"""Programs in place of the build worker: what a compiler may do, without a compiler."""

import sys
from pathlib import Path

from harness.cases.plan import Job

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
JOB = Job("compile", "0123456789abcdef", "tiny-opencl-float32-untuned", {"request": {}})


def worker(folder: Path, script: str) -> tuple[str, ...]:
    file = folder / "worker.py"
    file.write_text(script)
    return sys.executable, str(file)
