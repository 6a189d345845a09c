"""The share of seeded faults in core modules that the tests beside them find: a table in Markdown.

    python -m benchmarks.mutants [--count 200] [--seed 1] [--module GLOB]

Each fault changes one place: a comparison, an operator of logic or arithmetic, a number, a condition, or a returned
value. The tests of the module's own files in `tests/unit` and `tests/integration` run, as `make test` runs them. Others
may find more, above all those through devices. What is not found is said as it goes.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/unit", "tests/integration")
CORE = ("harness/base", "harness/compile", "harness/measure", "harness/judge", "device_runner")
OTHERS = ("stand_ins", "/report/", "__init__")
"""What draws, and what stands in for a phone, is judged by other tests."""
DEADLINE_S = 300
MIRRORED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Place:
    """One place that can be changed: the number of a node in the order of `ast.walk`."""

    file: str
    node: int
    line: int
    kind: str

    @property
    def tests(self) -> list[str]:
        """Files of the module's own tests."""
        return tests_of(Path(self.file))

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        return self.file.removesuffix(".py").replace("/", ".")


def tests_of(module: Path) -> list[str]:
    """Return the files of a module's own tests, also several of one module; `module` is below the root."""
    folders = [ROOT / folder / module.parent for folder in TESTS]
    return [
        str(file.relative_to(ROOT))
        for folder in folders
        for name in (f"test_{module.stem}.py", f"test_{module.stem}_*.py")
        for file in sorted(folder.glob(name))
    ]


def change(node: ast.AST) -> str:
    """Change a node in place. Returns the kind of the change; empty for one that is left as it is."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in MIRRORED:
        node.ops[0] = MIRRORED[type(node.ops[0])]()
        return "comparison"
    if isinstance(node, (ast.BoolOp, ast.BinOp)) and type(node.op) in MIRRORED:
        node.op = MIRRORED[type(node.op)]()
        return "logic" if isinstance(node, ast.BoolOp) else "arithmetic"
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        node.value += 1
        return "number"
    if isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "condition"
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        node.value = ast.Constant(None)
        return "returned value"
    return ""


def places(file: Path) -> Iterator[Place]:
    """Places of a module, but for those that only type checkers and `__repr__` see."""
    name = str(file.relative_to(ROOT))
    for number, node in enumerate(ast.walk(ast.parse(file.read_text("utf-8")))):
        if kind := change(copy.deepcopy(node)):
            yield Place(name, number, getattr(node, "lineno", 0), kind)


def core_modules(glob: str = "*") -> Iterator[Path]:
    """Modules of the core that match and have a file of tests of their own."""
    for folder in CORE:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = file.relative_to(ROOT)
            if name.match(glob) and tests_of(name) and not any(part in str(name) for part in OTHERS):
                yield file


class FaultyLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with its fault."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.module, str(ROOT / place.file))
        self._place = place

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed tree."""
        tree = ast.parse(Path(self.path).read_text("utf-8"))
        change(next(node for number, node in enumerate(ast.walk(tree)) if number == self._place.node))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


@dataclass(frozen=True)
class FaultyFinder(importlib.abc.MetaPathFinder):
    """Finds one module, to load it with its fault."""

    place: Place

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Return the module's specification; None for any other."""
        if name != self.place.module:
            return None
        loader = FaultyLoader(self.place)
        return importlib.machinery.ModuleSpec(name, loader, origin=loader.path)


def is_found(place: Place) -> bool:
    """Return whether the module's tests fail, or do not end, with the fault; they run in a fork of this process."""
    if not (child := os.fork()):
        _test(place)
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status != 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _test(place: Place) -> None:
    """Run the tests of a module with its fault, and end this process with their exit code."""
    import pytest

    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.meta_path.insert(0, FaultyFinder(place))
    # Without "plain", pytest would import the module itself to rewrite its assertions.
    os._exit(int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *place.tests])))


def table(tried: Sequence[tuple[Place, bool]]) -> str:
    """Build the table: by package, how many faults were found."""
    # Not before: a fork has to load its own, with the fault.
    from harness.tools.shared.markdown import unpadded_markdown

    packages = sorted({package_of(place) for place, _ in tried})
    rows = [row(package, [found for place, found in tried if package_of(place) == package]) for package in packages]
    return unpadded_markdown([*rows, row("all", [found for _, found in tried])], ("package", "faults", "found"))


def row(name: str, found: Sequence[bool]) -> tuple[str, ...]:
    """Build a row: the faults, and how many of them were found."""
    return name, str(len(found)), f"{sum(found)} ({sum(found) / len(found):.0%})"


def package_of(place: Place) -> str:
    """Return `device_runner`, or the part of the harness that the module is in."""
    first, second, *_ = Path(place.file).parts
    return f"{first}/{second}" if first == "harness" else first


def main() -> None:
    """Try the faults, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--module", default="*", help="glob of modules, such as harness/judge/*.py")
    asked = parser.parse_args()
    import hypothesis  # noqa: F401  (loaded once, for all forks)
    import numpy  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401

    os.chdir(ROOT)
    every = [place for file in core_modules(asked.module) for place in places(file)]
    tried = []
    for place in random.Random(asked.seed).sample(every, asked.count):
        tried.append((place, is_found(place)))
        if not tried[-1][1]:
            print(f"not found: {place.file}:{place.line}, {place.kind}", file=sys.stderr, flush=True)
    print(f"{asked.count} of {len(every)} places, seed {asked.seed}\n\n{table(tried)}")


if __name__ == "__main__":
    main()
