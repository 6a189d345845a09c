"""No public name of the product is there for tests alone, or for nobody."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from places import ROOT

PRODUCT = ("adreno_bench", "harness", "device_runner", "benchmarks")
"""A name that only a benchmark uses counts as used: the tables of the documentation are made by these."""
CHECKED = ("harness", "device_runner")

ALLOWED = {
    "harness.tools.asv.plugin.setup": "asv calls it",
    "harness.pytest_plugin.test_cases.pytestmark": "pytest reads it",
    "harness.tools.correctness.fixtures.add_options": "the plugin calls it on the module that it loads",
}
"""Names that nothing here uses, and why they stay."""
CALLED_BY_NAME = re.compile(
    r"harness\.cli\.(\w+)\.\1|harness\.tools\.\w+\.TOOL|harness\.(pytest_plugin|tools\.correctness)\.\w+\.(pytest_\w+|test_\w+)"
)
"""A command has its module's name (`harness.cli.commands`); a tool is listed by its module
(`harness.base.tool`); pytest calls hooks and tests by how they are called."""
REGISTERED = re.compile(r"(.+\.)?(command|fixture)")
"""Decorators that hand a function to somebody who calls it."""


@dataclass
class Module:
    """What one file defines, and which names it uses of which module."""

    name: str
    is_package: bool
    tree: ast.Module
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    """Dotted name by the local name that it is imported under."""


def module_of(file: Path) -> Module:
    parts = file.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = Module(".".join(parts[:-1] if is_package else parts), is_package, ast.parse(file.read_bytes()))
    for statement in module.tree.body:
        for name in names_of(statement):
            module.defined[name] = statement
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module.imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            module.imported |= {
                alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0]
                for alias in node.names
            }
    return module


def names_of(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if not any(REGISTERED.fullmatch(called(decorator)) for decorator in statement.decorator_list):
            yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    elif isinstance(statement, ast.If | ast.Try):
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from names_of(inner)


def called(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def references(module: Module) -> Iterator[str]:
    """Dotted names that a module uses, of itself and of others; texts may hold a name that is loaded later."""
    own = {name for statement in module.defined.values() for name in names_of(statement)}
    for statement in module.tree.body:
        defines = {*names_of(statement)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in module.imported:
                    yield module.imported[node.id]
                elif node.id in own and (node.id not in defines or isinstance(statement, ast.If | ast.Try)):
                    yield f"{module.name}.{node.id}"
            elif isinstance(node, ast.Attribute):
                if rest := attributes(node):
                    first = rest.pop(0)
                    yield ".".join([module.imported.get(first, first), *rest])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from texts(node.value)


def attributes(node: ast.expr) -> list[str]:
    """The parts of a dotted name; none of any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def texts(value: str) -> Iterator[str]:
    """Names in a text that holds code or a place to load: `from harness.x import y`, `harness.x:y`."""
    for module, names in re.findall(r"from ((?:harness|device_runner)[\w.]*) import ([\w, ]+)", value):
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))
    yield from (found.replace(":", ".") for found in re.findall(r"(?:harness|device_runner)(?:[.:]\w+)+", value))


def of_templates(modules: Iterable[str]) -> Iterator[str]:
    """What the templates of pages use of a module that they are given under its own name."""
    text = "".join(file.read_text("utf-8") for file in ROOT.glob("harness/**/*.j2"))
    for module in modules:
        name = module.rpartition(".")[2]
        yield from (f"{module}.{found}" for found in re.findall(rf"\b{name}\.(\w+)", text))


def unused() -> list[str]:
    """Public names of the product that nothing of it uses, and that are no part of the Python interface."""
    files = (file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*.py")))
    modules = {module.name: module for module in map(module_of, files)}

    def home(dotted: str) -> str:
        """Where a name is defined, through packages that hand it on."""
        for _ in range(5):
            parent, _, name = dotted.rpartition(".")
            module = modules.get(parent)
            if module is None or name in module.defined or name not in module.imported:
                return dotted
            dotted = module.imported[name]
        return dotted

    used = set[str]()
    for module in modules.values():
        handed_on = {*module.imported.values()} if module.is_package else set[str]()
        for dotted in references(module):
            if dotted not in handed_on or modules.get(dotted) is None:
                parts = dotted.split(".")
                used |= {home(".".join(parts[:end])) for end in range(2, len(parts) + 1)}
    elsewhere = [*texts((ROOT / "pyproject.toml").read_text("utf-8")), *of_templates(modules)]
    used |= {home(dotted) for dotted in (*elsewhere, *modules["adreno_bench"].imported.values())}
    return sorted(
        dotted
        for module in modules.values()
        if module.name.split(".")[0] in CHECKED
        for name in module.defined
        if not name.startswith("_") and (dotted := f"{module.name}.{name}") not in used
        if not CALLED_BY_NAME.fullmatch(dotted)
    )


def test_every_public_name_but_the_exceptions_is_used_by_more_than_tests() -> None:
    assert unused() == sorted(ALLOWED)
