"""Files and modules that documentation and comments name are there."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from places import ROOT

OURS = ("harness", "device_runner", "tests", "benchmarks", "docs", "baselines", ".ci", ".github")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("baselines/*.md")])
SOURCES = sorted(
    file for folder in ("harness", "device_runner", "benchmarks", "tests") for file in ROOT.glob(f"{folder}/**/*.py")
)

WHOLE_PATH = re.compile(rf"(?<![\w/.<>{{}}-])(?:{'|'.join(map(re.escape, OURS))})/[\w./*-]*\w(?![\w{{<*])")
"""A path from the root of the project."""
DOTTED = re.compile(r"`((?:harness|device_runner)(?:\.\w+)+)`")
PAGE_NAME = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w-]+\.md\b")
MADE_OR_MEANT = {"run.md", "FILE.md", "summary.md", "report.md", "REPORT.md"}
"""Pages that commands write."""
SHORT_PATH = re.compile(r"`([\w-]+(?:/[\w-]+)*\.py)`")
"""In a page: the end of a path, as in `stats/engine.py`."""
FOLDER = re.compile(r"`([\w-]+(?:/[\w-]+)*)/`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
ANCHORED = re.compile(r"\]\(((?![a-z]+:)[^)#\s]*)#([^)\s]+)\)")
OF_A_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OF_OTHERS = (
    *("python/", "src/", "relax/", "dlight/", "tvm/", "topi/", "tests/python/"),
    *("tune_context.py", "local_builder.py", "fallback.py"),
    *("docs/comparison-analysis.md", "reproduce.py"),
)
"""Beginnings of paths in TVM's sources, files of TVM's, a page of rustc-perf's, and what `reduce` writes."""
MADE_LATER = {"baselines/noise"}
"""What a command makes."""


@cache
def tracked() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    return frozenset(files) | {str(folder) for name in files for folder in PurePosixPath(name).parents}


def is_there(path: str) -> bool:
    return path in tracked() or any(PurePosixPath(name).match(path) for name in tracked() if "*" in path)


def is_the_end_of_one(path: str) -> bool:
    return any(f"/{name}".endswith(f"/{path}") for name in tracked())


def is_defined(dotted: str) -> bool:
    """Whether this is a module, or a name in one, or an attribute of a class in one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:end])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.exists():
            text = file.read_text("utf-8")
            return all(
                re.search(rf"^\s*(?:class |(?:async )?def |.*import .*\b|){name}\b", text, re.MULTILINE)
                for name in parts[end:]
            )
    return False


def missing(text: str) -> Iterator[str]:
    """What a text names of ours that is not there."""
    paths = (path.rstrip(".") for path in WHOLE_PATH.findall(text) if not path.startswith(OF_OTHERS))
    yield from (path for path in paths if not is_there(path) and path not in MADE_LATER)
    yield from (name for name in DOTTED.findall(text) if not is_defined(name) and name not in MADE_LATER)


def comments_of(file: Path) -> str:
    """The docstrings and comments of a source; texts are for whoever reads them at run time, and hold examples."""
    source = file.read_text("utf-8")
    strings = (node.value for node in statements(ast.parse(source)) if isinstance(node, ast.Expr))
    told = [node.value for node in strings if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join([*told, *re.findall(r"#.*", source)])


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements, which are far fewer than the expressions in them."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield inner
            yield from statements(inner)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    written = set(re.findall(r"^# (\S+\.py)$", text, re.MULTILINE))  # files that the page shows whole
    short = (path for path in SHORT_PATH.findall(text) if not path.startswith(OF_OTHERS))
    gone = [*missing(text), *(path for path in short if not is_the_end_of_one(path))]
    assert [path for path in gone if path not in written] == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as GitHub and the site make them."""
    text = OF_A_FENCE.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_heading_that_a_page_links_to_is_there(page: Path) -> None:
    links = [(link, anchor) for link, anchor in ANCHORED.findall(OF_A_FENCE.sub("", page.read_text("utf-8")))]
    files = [(page.parent / link if link else page, anchor) for link, anchor in links]
    assert [f"{file}#{anchor}" for file, anchor in files if anchor not in anchors(file)] == []


def test_every_folder_of_the_map_is_there() -> None:
    folders = FOLDER.findall((ROOT / "docs/explanation/architecture.md").read_text("utf-8"))
    assert [folder for folder in folders if not is_the_end_of_one(folder)] == []


def test_what_comments_and_docstrings_name_is_there() -> None:
    found = {str(file.relative_to(ROOT)): [*missing(comments_of(file))] for file in SOURCES}
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_is_named_is_there(page: Path) -> None:
    named = set(PAGE_NAME.findall(page.read_text("utf-8"))) - MADE_OR_MEANT
    relative = {name for name in named if (page.parent / name).exists()}
    assert {
        name for name in named - relative if not is_the_end_of_one(name) and not name.startswith(OF_OTHERS)
    } == set()
