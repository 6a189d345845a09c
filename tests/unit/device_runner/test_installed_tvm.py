"""Which TVM is installed: a release by its version, one that somebody built by what it consists of."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_runner import installed_tvm
from device_runner.failures import SetupMissing
from device_runner.stand_ins.tvm_rpc import runtime

STATED = '__version__ = version = "0.28.dev7+g0123abc"\n'


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a Python of its own, in which no other TVM is found, nor was imported by a test before."""
    for package in ("tvm", "tvm_ffi"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "site-packages" not in entry])
    monkeypatch.delenv(installed_tvm.LIBRARY_PATH, raising=False)
    installed_tvm.version.cache_clear()
    yield
    installed_tvm.version.cache_clear()


def files(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def found_first(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def wheel(site: Path) -> Path:
    """TVM as pip installs it."""
    contents = {"tvm/__init__.py": "", "tvm/topi/nn.py": "pad = 1\n", "tvm/lib/libtvm_compiler.so": "compiler"}
    info = "apache_tvm-0.27.0.post1.dist-info"
    contents[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: apache-tvm\nVersion: 0.27.0.post1\n"
    rows = []
    for name, text in contents.items():
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text)}\n")
    files(site, contents | {f"{info}/RECORD": "".join([*rows, f"{info}/RECORD,,\n"])})
    found_first(site)
    return site


def checkout(folder: Path) -> Path:
    """TVM as its engineers have it: sources on PYTHONPATH, libraries in the folder that they were built in."""
    python = {"python/tvm/__init__.py": "", "python/tvm/_version.py": STATED, "include/tvm/ir.h": ""}
    files(folder, python | {"build/lib/libtvm_compiler.so": "compiler", "build/lib/libtvm_runtime.so": "runtime"})
    found_first(folder / "python")
    return folder


def again() -> str:
    installed_tvm.version.cache_clear()
    return installed_tvm.version("tvm")


def test_a_release_is_called_by_its_version(tmp_path: Path) -> None:
    wheel(tmp_path)
    assert again() == "0.27.0.post1"


def test_a_release_that_was_copied_is_still_one(tmp_path: Path) -> None:
    site = wheel(tmp_path)
    os.utime(site / "tvm/topi/nn.py", (4e9, 4e9))  # younger than the list of files
    assert again() == "0.27.0.post1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tvm/topi/nn.py", "pad = 2\n"),
        ("tvm/topi/nn.py", "pad = 1  # mine\n"),
        ("tvm/topi/mine.py", "pad = 2\n"),
        ("tvm/lib/libtvm_compiler.so", "comp1ler"),
    ],
    ids=["same size", "another size", "one more", "library"],
)
def test_a_release_that_was_edited_is_one_no_more(tmp_path: Path, name: str, text: str) -> None:
    edited = wheel(tmp_path) / name
    edited.write_text(text)
    os.utime(edited, (4e9, 4e9))
    assert again().startswith("0.27.0.post1+built.")


def test_a_wheel_that_somebody_built_is_no_release(tmp_path: Path) -> None:
    site = wheel(tmp_path)
    files(site, {"apache_tvm-0.27.0.post1.dist-info/direct_url.json": '{"url": "file:///dist/apache_tvm.whl"}'})
    assert again().startswith("0.27.0.post1+built.")


def test_a_checkout_says_its_own_version_though_a_wheel_is_installed_too(tmp_path: Path) -> None:
    wheel(tmp_path / "site")
    checkout(tmp_path / "tvm")
    assert again().startswith("0.28.dev7+built.")


def test_a_checkout_that_was_built_again_is_another_tvm(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    seen = {again()}
    for name in ("build/lib/libtvm_compiler.so", "python/tvm/__init__.py"):
        (folder / name).write_text((folder / name).read_text()[::-1] + "#")
        seen.add(again())
    (folder / "include/tvm/ir.h").write_text("not loaded")
    assert again() in seen
    assert len(seen) == 3


def test_where_it_lies_is_no_part_of_it(tmp_path: Path) -> None:
    checkout(tmp_path / "here")
    first = again()
    checkout(tmp_path / "there")
    assert again() == first


def test_the_parts_of_a_checkout_are_found(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    assert installed_tvm.package_folder("tvm") == folder / "python/tvm"
    assert installed_tvm.library_folders("tvm") == [folder / "build/lib"]
    assert installed_tvm.include_folders("tvm") == [folder / "include"]
    assert installed_tvm.library("tvm", "libtvm_runtime_opencl.so", "libtvm_runtime.so").parent == folder / "build/lib"


def test_the_folder_that_the_environment_names_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout(tmp_path)
    first, other = again(), files(tmp_path / "debug", {"libtvm_compiler.so": "another compiler"})
    monkeypatch.setenv(installed_tvm.LIBRARY_PATH, str(other))
    assert installed_tvm.library_folders("tvm")[0] == other
    assert again() != first


def test_a_checkout_that_was_never_built_says_where_libraries_were_looked_for(tmp_path: Path) -> None:
    files(tmp_path, {"python/tvm/__init__.py": ""})
    found_first(tmp_path / "python")
    with pytest.raises(SetupMissing, match=r"no libraries: looked in .*build/lib.*TVM_LIBRARY_PATH"):
        again()


def test_no_tvm_says_how_to_get_one() -> None:
    with pytest.raises(SetupMissing, match=r"tvm is not installed.*requirements\.lock"):
        again()


def test_tvm_is_found_without_importing_it() -> None:
    script = (
        "import sys; from device_runner import installed_tvm\n"
        "found = any((one / 'tvm/runtime/device_api.h').exists() for one in installed_tvm.include_folders('tvm'))\n"
        "print(found, 'tvm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True False\n"


def test_a_device_loads_the_opencl_runtime_that_a_tvm_was_built_with(tmp_path: Path) -> None:
    names = ("libtvm_runtime.so", "libtvm_runtime_extra.so", "libtvm_runtime_opencl.so")
    found_first(files(tmp_path, {f"tvm/{name}": "" for name in ("__init__.py", *(f"lib/{name}" for name in names))}))
    assert [library.name for library in runtime._libraries()] == list(names)
