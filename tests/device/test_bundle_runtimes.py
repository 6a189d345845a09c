"""Bundles for other machines carry the runtime that `adreno-bench runtime add` keeps, through the product's own code.

The runtime's libraries are stand-ins whose code is never run; `make test-arm64` runs real ones.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import phone_libraries
import pytest
from phone_libraries import ANDROID, BOARD, FFI, link
from shell_bundles import Asked, Made, Place
from typer.testing import CliRunner

from device_runner.device import Loadable
from device_runner.failures import SetupMissing
from device_runner.runtimes.phone.elf import read_elf
from harness.cli import app
from harness.tools.bundle.pack import KINDS, pack
from harness.tools.bundle.results import read_manifest
from harness.tools.runtime import check

pytestmark = [
    pytest.mark.rest,
    pytest.mark.device,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (`make phones`)"),
]

X = np.zeros((4, 8), np.float32)


@pytest.mark.parametrize(
    ("kind", "loader", "libc"), [("android-arm64", ANDROID, "libc.so"), ("linux-aarch64", BOARD, "libc.so.6")]
)
def test_a_kept_runtime_travels_in_the_order_to_load_it(
    kind: str, loader: tuple[str, ...], libc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, folder = tmp_path / "cache", phone_libraries.runtime_in(tmp_path / "runtime", loader, libc)
    link(folder / "libc++_shared.so", "void std(){}", [libc])
    link(folder / "libtvm_ffi.so", FFI, ["libc++_shared.so", libc])
    monkeypatch.setattr(check, "host_interface", lambda: phone_libraries.HOST)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(cache))
    added = CliRunner().invoke(app, ["runtime", "add", str(folder)])
    assert added.exit_code == 0, added.output
    place = Place(tmp_path, tmp_path, KINDS[kind])
    place.pack(cache, a_case(tmp_path))
    build = json.loads(read_manifest(place.there))["builds"]["head"]
    names = ("libc++_shared.so", "libtvm_ffi.so", "libtvm_runtime.so", "libtvm_runtime_opencl.so")
    assert build["libraries"] == [f"lib/head/{name}" for name in names]
    assert build["runtime"] == added.output.split()[0]
    assert not (place.there / "lib/head/tvm_rpc").exists()
    programs = [build["probe"], *build["libraries"], "runner"]
    assert {read_elf(place.there / file).machine for file in programs} == {"EM_AARCH64"}
    lines = (place.there / "cases/head/one-opencl-float32-untuned.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("load ")] == [f"load lib/head/{name}" for name in names]
    assert (place.there / "link.sh").exists() is (kind != "android-arm64")
    preload = place.there / "cases/head/preload"
    assert preload.exists() is (kind == "android-arm64")
    assert not preload.exists() or preload.read_text() == ":".join(names) + "\n"


def test_a_runtime_that_is_missing_is_told_before_anything_is_built(tmp_path: Path) -> None:
    asked: Any = Asked(tmp_path / "cache", [a_case(tmp_path)])
    with pytest.raises(SetupMissing, match="runtime for phones with ABI arm64-v8a yet") as raised:
        pack(asked, KINDS["android-arm64"], lambda plans: pytest.fail("built"), tmp_path / "bundle.tar")
    assert "adreno-bench runtime add" in raised.value.hint


def a_case(folder: Path) -> Made:
    library = folder / "one.so"
    library.write_bytes(b"code for a phone")
    return Made("one", Loadable(library, "0" * 64, 1), X, X)
