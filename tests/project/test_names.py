"""Modules, classes and functions of the product are called by what they are or do: nouns and verbs."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from places import ROOT

NO_NAMES = {
    *("told", "kept", "held", "found", "noted", "judged", "attempted", "known", "worth", "foresight"),
    *("ahead", "beside", "apart", "several", "elsewhere", "like", "cross"),
    *("confined", "declined", "examined", "lowered", "misread", "shown", "unexpected", "unwelcome"),
}
"""Past participles, adverbs and adjectives that once were names here. Said in a test, because no linter knows them."""

NO_VALUES = NO_NAMES | {"one", "said", "given", "wanted", "taken", "made", "seen"}
"""The same for parameters, variables and fields."""

OPEN_ROOMS = ("harness/compile/models/preparation/",)
"""Rooms whose parameters, variables and fields are not yet held to this."""

PUBLIC = {("harness/tools/upstream/probe_answer.py", "seen"), ("harness/tools/shared/finding.py", "seen")}
"""Fields that are keys of public JSON."""


def files() -> list[Path]:
    return sorted(file for package in ("harness", "device_runner") for file in (ROOT / package).rglob("*.py"))


def names_of(file: Path) -> list[str]:
    nodes = ast.walk(ast.parse(file.read_bytes()))
    defined = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    return [file.stem, *defined]


def test_no_name_is_a_participle_or_an_adverb() -> None:
    found = {file: [name for name in names_of(file) if name.strip("_").lower() in NO_NAMES] for file in files()}
    assert {str(file.relative_to(ROOT)): names for file, names in found.items() if names} == {}


def values_of(file: Path) -> list[str]:
    """Return the names of parameters, variables and fields, those of loops and comprehensions, too."""
    nodes = list(ast.walk(ast.parse(file.read_bytes())))
    parameters = [node.arg for node in nodes if isinstance(node, ast.arg)]
    return parameters + [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def test_no_value_is_called_by_a_participle_or_a_number() -> None:
    values = ((str(file.relative_to(ROOT)), name) for file in files() for name in values_of(file))
    wrong = {
        (file, name)
        for file, name in values
        if name.strip("_").lower() in NO_VALUES and not file.startswith(OPEN_ROOMS)
    }
    assert wrong - PUBLIC == set()


def test_no_two_classes_have_one_name() -> None:
    places = Counter(
        node.name
        for file in files()
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in places.items() if count > 1] == []
