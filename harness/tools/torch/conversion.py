"""A `torch.export` program (`.pt2`) as an ONNX file, made by torch in a process of its own and kept.

Such a file is a zip archive of JSON and numbers, and of pickles. `torch.export.load` unpickles example inputs, weights
of unusual layout and objects, and evaluates the texts of symbolic shapes (torch/export/pt2_archive/_package.py and
torch/_export/serde/serialize.py of torch 2.13): its author may run anything. So torch gets a copy
with nothing in it but what is known to be data, the numbers of the weights and a graph of ATen operators, unless
the caller trusts the file. It is a process for itself in any case: torch takes seconds and gigabytes, and may crash.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from device_runner.failures import SetupMissing
from device_runner.files import scratch_folder, what_else
from device_runner.foreign_json import read_json
from device_runner.store import sha256_of
from harness.base.failures import ModelError
from harness.base.process import bound, complaint_of, run_to_end
from harness.compile.models.onnx_read import LARGEST_MODEL_BYTES
from harness.tools.shared.kept_file import keep_file

GRAPH = "models/model.json"
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
CONFIGS = {WEIGHTS: "model_weights_config.json", CONSTANTS: "model_constants_config.json"}
PLAIN = {"archive_format", "archive_version", ".data/version", "byteorder", ".data/serialization_id"}
EXAMPLES = "data/sample_inputs/model.pt"
"""A pickle. Conversion does not need it."""
NUMBERS = re.compile(r"(weight|tensor)_\d{1,9}")

_TARGET = re.compile(
    r"torch\.ops\.aten\.(?!_dir\.)_?[a-z]\w*\.[A-Za-z]\w*|_operator\.(getitem|add|sub|mul|floordiv|mod|eq|ge|le|gt|lt)"
)
"""ATen has operators of its own use, `_softmax`; `_dir` is no operator but a list of torch's."""
_SYMBOL = re.compile(r"Symbol\('[a-z]+\d+'(, (positive|nonnegative|integer)=True)*\)|\b[su]\d+\b")
_SUM = re.compile(r"(?:\b(Integer|Add|Mul|Max|Min|Mod|FloorDiv)\b|\*(?!\*)|[@\d\s+\-(),])*")
"""What is left of a symbolic extent once its symbols are `@`."""
_CONTAINERS = {None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"}
HINT = "if you trust its author, allow torch to execute what is in it: --trust"


def plain_archive(file: Path) -> bytes:
    """Return a copy of a program for torch to load, in which nothing can be executed.

    Raises `ModelError` for what is none, is damaged, or cannot do without what might be executed.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _copy_plain(file, archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as error:
        raise ModelError(f"{file} is not a torch.export program ({error})", hint="get the file again") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{file} is damaged ({type(error).__name__})", hint="get the file again") from error


def _copy_plain(file: Path, archive: zipfile.ZipFile) -> bytes:
    entries = _entries(file, archive)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as copy:

        def keep(name: str, data: bytes) -> None:
            copy.writestr(f"model/{name}", data)

        for name in sorted(PLAIN & entries.keys()):
            keep(name, archive.read(entries[name]))
        keep(GRAPH, json.dumps(_graph(file, read_json(archive.read(entries[GRAPH])))).encode())
        for folder, config in CONFIGS.items():
            index = read_json(archive.read(entries[folder + config]))
            for name in _numbers(file, index):
                if f"model/{folder}{name}" not in copy.namelist():
                    keep(folder + name, archive.read(entries[folder + name]))
            keep(folder + config, json.dumps({"config": index["config"]}).encode())
        keep(EXAMPLES, b"")
    return buffer.getvalue()


def _entries(file: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the archive's entries by their name below its only folder. Raises `ModelError`."""
    entries = archive.infolist()
    if "serialized_exported_program.json" in {entry.filename for entry in entries}:
        hint = f"export it again with torch 2.8 or later; or, {HINT}"
        raise ModelError(f"{file} is of an older torch, whose weights can only be unpickled", hint=hint)
    if sum(entry.file_size for entry in entries) > LARGEST_MODEL_BYTES:
        raise ModelError(f"{file} has more than 2 GB", hint="export it in half precision")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ModelError(f"{file} is compressed, which torch never does", hint="export it again")
    by_name = {entry.filename.partition("/")[2]: entry for entry in entries}
    if GRAPH not in by_name or len({entry.filename.partition("/")[0] for entry in entries}) != 1:
        raise ModelError(f"{file} is not a torch.export program", hint="write one with torch.export.save")
    return by_name


def _numbers(file: Path, index: Any) -> Iterator[str]:
    """Yield the names of the files that hold weights as plain numbers."""
    for name, entry in index["config"].items():
        if entry["use_pickle"] or not NUMBERS.fullmatch(entry["path_name"]):
            raise ModelError(f"{file} keeps {name!r:.100} as a pickle, and unpickling executes code", hint=HINT)
        yield entry["path_name"]


def _graph(file: Path, program: Any) -> Any:
    """Return the graph, less what is only told of it.

    Raises `ModelError` if torch would look up or evaluate anything else.
    """
    program["guards_code"] = []
    for node in program["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    for key, value in _everything(program):
        if key in ("target", "as_operator") and not _TARGET.fullmatch(str(value)):
            raise ModelError(f"{file} calls {value!r:.100}, which is not an operator of ATen", hint=HINT)
        if key == "expr_str" and not _harmless(value):
            raise ModelError(f"{file} has the extent {value!r:.100}, which torch would evaluate", hint=HINT)
        if key in ("in_spec", "out_spec") and value:
            _require_containers(file, read_json(value))
    for name in program["range_constraints"]:
        if not _harmless(name):
            raise ModelError(f"{file} has the extent {name!r:.100}, which torch would evaluate", hint=HINT)
    return program


def _everything(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key with its value, however deep."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value.items()
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _harmless(expression: str) -> bool:
    """Return whether a symbolic extent is a sum of products of symbols, so that evaluating it does nothing else."""
    left = _SYMBOL.sub("@", expression)
    return len(expression) < 10_000 and "@(" not in left and _SUM.fullmatch(left) is not None


def _require_containers(file: Path, tree: Any) -> None:
    """Check the tree of inputs or outputs: torch imports modules for the classes that it names."""
    for key, value in _everything(tree):
        if key == "type" and value not in _CONTAINERS:
            raise ModelError(f"{file} takes or gives a {value!r:.100}, which torch would import", hint=HINT)


OPSET = 18
"""The oldest that torch's exporter writes, and one that TVM's importer knows."""
DEADLINE_S = 600.0
NEEDED = ("torch", "onnxscript")
SMALL_WHEELS = "https://download.pytorch.org/whl/cpu"
"""torch for processors; PyPI's brings CUDA's libraries, 5 GB."""
_CODE = "import sys; from harness.tools.torch.conversion import convert; convert(*sys.argv[1:])"


def as_onnx(file: Path, folder: Path, *, trust: bool = False) -> Path:
    """Return the program as an ONNX file in `folder`, where it is kept under the hash of the program.

    With `trust`, torch loads the file as it is, which executes what its author put there.

    Raises `ModelError`; SetupMissing without torch.
    """
    if other := what_else(file):
        raise ModelError(f"{file} is {other}, not a file", hint="correct the model's path")
    if not file.exists():
        raise ModelError(f"{file} does not exist", hint="correct the model's path")
    target = folder / f"torch-{OPSET}-{sha256_of(file)[:24]}.onnx"
    plain = None if trust else plain_archive(file)
    return keep_file(target, lambda: _converted(file, plain))


def _converted(file: Path, plain: bytes | None) -> bytes:
    """Return the program as ONNX; `plain` is read in its place, if there is one."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        command = f"{sys.executable} -m pip install {' '.join(missing)} --extra-index-url {SMALL_WHEELS}"
        hint = f"`{command}`, or export the network as ONNX where torch is"
        raise SetupMissing(f"reading {file} takes {' and '.join(missing)}, not installed here", hint=hint)
    with scratch_folder() as scratch:
        source, target = file, scratch / "model.onnx"
        if plain is not None:
            source = scratch / "model.pt2"
            source.write_bytes(plain)
        _convert_in_a_process(file, source, target)
        return target.read_bytes()


def _convert_in_a_process(file: Path, source: Path, target: Path) -> None:
    command = [sys.executable, *bound(_CODE), str(source), str(target)]
    try:
        done = run_to_end(command, DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise ModelError(f"torch did not convert {file} within {DEADLINE_S:.0f} s", hint="export it as ONNX") from None
    if done.returncode or not target.exists():
        reason = f"{complaint_of(done):.300}"
        raise ModelError(f"torch cannot convert {file} to ONNX: {reason}", hint="export it as ONNX yourself")


def convert(source: str, target: str) -> None:
    """Load a program and write it as ONNX; in a process of its own."""
    import torch

    program = torch.export.load(source)
    model = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
    assert model is not None
    model.save(target)
