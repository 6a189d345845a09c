"""What TVM's ONNX importer knows, read from its source: importing TVM takes seconds, and this is asked before."""

from __future__ import annotations

import ast
import functools
import importlib.util
from pathlib import Path

from device_runner.failures import SetupMissing

TABLE = "_get_convert_map"
"""The function of the importer that returns its table, a dictionary of operators by name."""
HANDLED_ELSEWHERE = frozenset(("If", "Constant"))
"""By the importer, outside the table."""


@functools.cache
def onnx_operators() -> frozenset[str]:
    """Operators that the installed importer knows. Raises SetupMissing if there is no TVM with such a table."""
    spec = importlib.util.find_spec("tvm")
    for place in spec.submodule_search_locations or () if spec else ():
        file = Path(place, "relax", "frontend", "onnx", "onnx_frontend.py")
        if file.is_file() and (names := _keys(file.read_text(encoding="utf-8"))):
            return names | HANDLED_ELSEWHERE
    raise SetupMissing("there is no TVM with an ONNX importer", hint="install the pair of requirements.lock")


def _keys(source: str) -> frozenset[str]:
    """The keys of the dictionary that the table's function returns; it ends where the next definition begins."""
    _, found, rest = source.partition(f"\ndef {TABLE}(")
    if not found:
        return frozenset()
    ends = [end for word in ("\ndef ", "\nclass ") if (end := rest.find(word)) > 0]
    tree = ast.parse(f"def {TABLE}({rest[: min(ends, default=len(rest))]}")
    keys = [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    return frozenset(key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
