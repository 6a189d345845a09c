"""A `torch.export` program as an ONNX file, made by torch in a process of its own and kept.

What torch is given to load is a copy in which nothing can be executed (`harness.models.torch_archive`), unless whoever
asks trusts the file. That is a process for itself in any case: torch takes seconds and gigabytes, and may crash.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from device_runner.failures import SetupMissing
from device_runner.files import what_else, write_whole
from device_runner.store import sha256_of
from harness.failures import ModelError
from harness.models.torch_archive import plain_archive
from harness.process import bound

OPSET = 18
"""The oldest that torch's exporter writes, and one that TVM's importer knows."""
DEADLINE_S = 600.0
NEEDED = ("torch", "onnxscript")
_CODE = "import sys; from harness.models.torch_program import convert; convert(*sys.argv[1:])"


def as_onnx(file: Path, folder: Path, *, trust: bool = False) -> Path:
    """The program as an ONNX file in `folder`, where it is kept under the hash of the program.

    With `trust`, torch loads the file as it is, which executes what its author put there.

    Raises `ModelError`; SetupMissing without torch.
    """
    if other := what_else(file):
        raise ModelError(f"{file} is {other}, not a file", hint="correct the model's path")
    if not file.exists():
        raise ModelError(f"{file} does not exist", hint="correct the model's path")
    made = folder / f"torch-{OPSET}-{sha256_of(file)[:24]}.onnx"
    if trust and made.exists():
        return made
    plain = None if trust else plain_archive(file)
    if made.exists():
        return made
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        hint = "pip install 'adreno-bench[torch]', or export the network as ONNX where torch is"
        raise SetupMissing(f"{' and '.join(missing)} is not installed, which reads {file}", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source, target = file, Path(scratch) / "model.onnx"
        if plain is not None:
            source = Path(scratch) / "model.pt2"
            source.write_bytes(plain)
        _convert_in_a_process(file, source, target)
        return write_whole(made, target.read_bytes())


def _convert_in_a_process(file: Path, source: Path, target: Path) -> None:
    command = [sys.executable, *bound(_CODE), str(source), str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"torch did not convert {file} within {DEADLINE_S:.0f} s", hint="export it as ONNX") from None
    if done.returncode or not target.exists():
        said = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise ModelError(f"torch cannot convert {file} to ONNX: {said:.300}", hint="export it as ONNX yourself")


def convert(source: str, target: str) -> None:
    """Load a program and write it as ONNX; in a process of its own."""
    import torch

    program = torch.export.load(source)
    made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
    assert made is not None
    made.save(target)
