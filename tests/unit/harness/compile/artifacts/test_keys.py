"""Under which key a thing is kept: everything that decides what is compiled is part of it."""

from __future__ import annotations

import ast
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from compile_requests import request_for

from harness.base.plan import Job
from harness.compile.artifacts.keys import (
    PACKAGES,
    ROOT,
    _imports,
    compile_job,
    digest,
    oracle_job,
    pipeline_version,
    sources,
)
from harness.compile.models.spec import Original

REQUEST = request_for("model.onnx", "texture")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what takes part in a compilation."""
    root = tmp_path_factory.mktemp("tree")
    for file in sources():
        copy = root / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return root


def test_what_takes_part_in_a_compilation_is_found_by_its_imports() -> None:
    found = {str(file.relative_to(ROOT)) for file in sources()}
    assert found >= {
        "harness/compile/artifacts/compile.py",
        "harness/compile/artifacts/oracle.py",
        "harness/compile/oracle/onnx_runtime.py",
        "harness/compile/artifacts/reference_kernel.py",
        "harness/compile/models/onnx_read.py",
        "harness/compile/models/spec.py",
        "harness/compile/paths/clml/codegen.py",
        "harness/compile/quirks/texels.py",
        "device_runner/runtimes/clml.py",
        "device_runner/stand_ins/clml_runtime/src/module.cc",
        "device_runner/stand_ins/clml_runtime/src/ops.h",
    }
    others = ("harness/cli", "harness/measure", "harness/judge", "harness/tools", "harness/base/tool.py")
    for other in (*others, "device_runner/session"):
        assert not [file for file in found if file.startswith(other)]


def test_a_byte_more_in_any_of_these_sources_makes_another_key(tree: Path) -> None:
    files = sources(tree)
    assert digest(tree, files) == pipeline_version()
    for near in (files[n : n + 8] for n in range(0, len(files), 8)):  # few, as each digest reads all that it is given
        seen = {before := digest(tree, near)}
        for file in near:
            content = file.read_bytes()
            file.write_bytes(content + (b"//" if file.suffix in (".cc", ".h") else b"#"))
            seen.add(digest(tree, near))
            file.write_bytes(content)
        assert len(seen) == 1 + len(near)
        assert digest(tree, near) == before


def test_a_new_import_of_a_source_makes_it_part_of_the_key(tree: Path) -> None:
    compiled = tree / "harness" / "compile" / "artifacts" / "compile.py"
    content = compiled.read_text(encoding="utf-8")
    (tree / "harness" / "extra.py").write_text("")
    assert tree / "harness" / "extra.py" not in sources(tree)
    compiled.write_text(f"{content}\ndef late() -> None:\n    from harness import extra\n", encoding="utf-8")
    assert tree / "harness" / "extra.py" in sources(tree)
    compiled.write_text(content, encoding="utf-8")


def test_the_imports_of_every_source_are_those_of_its_syntax_tree() -> None:
    for file in (file for file in sources() if file.suffix == ".py"):
        assert set(_imports(file, PACKAGES)) == _imports_of_the_tree(ast.parse(file.read_bytes())), file


def _imports_of_the_tree(tree: ast.AST) -> set[str]:
    """What a module imports from our packages, by all that Python parses."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            names |= _imports_of_the_tree(ast.Module(node.orelse, []))
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        else:
            names |= _imports_of_the_tree(node)
    return {name for name in names if name.split(".")[0] in PACKAGES}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from harness import (  # all (of) it\n    case,\n    plan,  # )\n)\n", {"", ".case", ".plan"}),
        ("def late():\n    import harness.plan as p, os\n", {".plan"}),
        ('"""Prose\nfrom harness to phones (and\nimport harness\n"""', {""}),
        ("if TYPE_CHECKING:\n    from harness import case\n\n    import harness.plan\nimport harness", {""}),
        ("if typing.TYPE_CHECKING:\n    import harness.case\nelse:\n    import harness.plan\n", {".plan"}),
        ("try:\n    import harness.case\nexcept ImportError:\n    from harness import plan", {".case", "", ".plan"}),
        ("from harness_of_others import case\nimport os, harnesses\n", set()),
    ],
)
def test_imports_are_found_wherever_they_stand(tmp_path: Path, code: str, names: set[str]) -> None:
    (tmp_path / "module.py").write_text(code)
    assert set(_imports(tmp_path / "module.py", PACKAGES)) == {f"harness{name}" for name in names}


def test_everything_in_a_request_but_the_places_of_its_files_is_part_of_the_key() -> None:
    key = compile_job(REQUEST, "sha", "title").key
    assert compile_job(dataclasses.replace(REQUEST, model_file="elsewhere.onnx"), "sha", "other title").key == key
    assert compile_job(dataclasses.replace(REQUEST, schedules="elsewhere.jsonl"), "sha", "title").key == key
    others: dict[str, Any] = {
        "path": "opencl",
        "precision": "float16",
        "quirks": [],
        "host_triple": "aarch64-linux-android",
        "image2d_max_width": 1,
        "image2d_max_height": 1,
        "image_max_array_layers": 1,
        "linker": "another",
        "schedules_sha256": "another",
    }
    assert {*others, "model_file", "schedules"} == {field.name for field in dataclasses.fields(REQUEST)}
    keys = {compile_job(dataclasses.replace(REQUEST, **{name: value}), "sha", "").key for name, value in others.items()}
    assert len({key, compile_job(REQUEST, "another", "").key, *keys}) == len(others) + 2


def test_the_truth_depends_on_the_model_and_the_seed_and_on_no_release_of_tvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(content: str = "a", prepared: str = "sha", seed: int = 1) -> Job:
        (tmp_path / "a.onnx").write_text(content)
        return oracle_job(Original(tmp_path / "a.onnx"), REQUEST, prepared, seed, "a", {})

    first, others = job(), [job("b"), job(prepared="other"), job(seed=2)]
    assert len({first.key, *(other.key for other in others)}) == 4
    monkeypatch.setattr("harness.compile.artifacts.keys.versions", lambda: {"tvm": "another", "ffi": "1"})
    assert job().key == first.key
    assert first.otherwise
    assert job().otherwise != first.otherwise


def test_the_truth_of_a_tools_format_depends_on_the_sources_of_its_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.onnx", "a.pt2"):
        (tmp_path / name).write_text(name)

    def job() -> Job:
        return oracle_job(
            Original(tmp_path / "a.onnx", tmp_path / "a.pt2", "harness.tools.torch.judge:TorchProgram"),
            REQUEST,
            "sha",
            1,
            "a",
            {},
        )

    first = job()
    monkeypatch.setattr("harness.compile.artifacts.keys.module_version", lambda module: f"another {module}")
    assert job().key != first.key
