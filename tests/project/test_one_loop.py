"""What is measured goes through one loop: nothing else loads a program into a session."""

from __future__ import annotations

import ast

from places import ROOT

LOADERS = {
    "harness/measure/loop.py": "the loop",
    "harness/measure/tuning.py": "a tuning session, which measures nothing",
    "harness/measure/probes/reference.py": "the reference kernel, beside the program that the loop has loaded",
}


def loads_a_program(tree: ast.AST) -> bool:
    """Whether a module calls `Session.load`, which alone takes a deadline by name."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return any(
        call.func.attr == "load" and any(keyword.arg == "timeout_s" for keyword in call.keywords)
        for call in calls
        if isinstance(call.func, ast.Attribute)
    )


def test_only_the_loop_loads_what_is_measured() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "harness").rglob("*.py")}
    found = {file.relative_to(ROOT).as_posix() for file, text in sources.items() if loads_a_program(ast.parse(text))}
    assert found == set(LOADERS)
