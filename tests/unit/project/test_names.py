"""Modules, classes and functions of the product are called by what they are or do: nouns and verbs."""

from __future__ import annotations

import ast
from pathlib import Path

from places import ROOT

NO_NAMES = {
    *("told", "kept", "held", "found", "noted", "judged", "attempted", "known", "worth", "foresight"),
    *("ahead", "beside", "apart", "several", "elsewhere", "like", "cross"),
    *("confined", "declined", "examined", "lowered", "misread", "shown", "unexpected", "unwelcome"),
}
"""Past participles, adverbs and adjectives that once were names here. Said in a test, because no linter knows them."""


def names_of(file: Path) -> list[str]:
    nodes = ast.walk(ast.parse(file.read_bytes()))
    defined = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    return [file.stem, *defined]


def test_no_name_is_a_participle_or_an_adverb() -> None:
    files = sorted(file for package in ("harness", "device_runner") for file in (ROOT / package).rglob("*.py"))
    found = {file: [name for name in names_of(file) if name.strip("_").lower() in NO_NAMES] for file in files}
    assert {str(file.relative_to(ROOT)): names for file, names in found.items() if names} == {}
