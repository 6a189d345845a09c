"""What a person sees goes through `harness.base.terminal`: no other module writes to the terminal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from places import ROOT

WRITERS = {
    "harness/judge/report/screen.py": "draws what is going on with rich, each text made plain",
    "harness/tools/fleet/devices_command.py": "draws a table with rich, each text made plain",
    "harness/tools/doctor/opencl_status.py": "a child process that tells its parent",
}
NAMES = {"print", "echo", "secho", "Console", "rprint", "print_exception"}
STREAMS = {"stdout", "stderr"}


def writes(tree: ast.AST) -> Iterator[str]:
    """What in a module writes to the terminal."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if name in NAMES:
            yield name
        if name == "basicConfig" and not any(keyword.arg == "handlers" for keyword in node.keywords):
            yield name
        if name in ("write", "writelines") and isinstance(called, ast.Attribute) and _is_stream(called.value):
            yield name


def _is_stream(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in STREAMS and ast.unparse(node.value) == "sys"


def test_nothing_else_writes_to_the_terminal() -> None:
    sources = {file: ast.parse(file.read_text(encoding="utf-8")) for file in (ROOT / "harness").rglob("*.py")}
    found = {file.relative_to(ROOT).as_posix() for file, tree in sources.items() if [*writes(tree)]}
    assert found == set(WRITERS)
