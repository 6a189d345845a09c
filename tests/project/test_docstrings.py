"""Docstrings say what a function does: a verb that fits, and `Return` only where there is a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from places import ROOT

NO_VALUE = {"None", "NoReturn"}
BROKEN = re.compile(r"Return (names?|the same|nothing|for|by|with|of|in|if|to|at|only|no|each|both|those|one)\b")
"""Beginnings that a pass over all docstrings once left behind, most of them no sentences."""
FITTING = {"harness/judge/gate.py both"}
"""Functions that do return both of two things."""


def functions(folder: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(ROOT)} {node.name}", node, text


def packages() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for folder in ("harness", "device_runner"):
        yield from functions(folder)


def test_a_function_without_a_value_does_not_say_return() -> None:
    wrong = [
        place
        for place, node, text in packages()
        if node.returns and ast.unparse(node.returns) in NO_VALUE and text.startswith("Return ")
    ]
    assert wrong == []


def test_what_a_function_returns_is_named() -> None:
    assert [place for place, _, text in packages() if BROKEN.match(text) and place not in FITTING] == []
