"""How the sidecar is built and cached, with a compiler that only pretends."""

from __future__ import annotations

import shutil
import stat
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from device_runner.failures import RigFailure, SetupMissing
from device_runner.runtimes import host, opencl, recipe
from device_runner.runtimes.opencl import sidecar


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that writes what it was asked for and counts its links."""
    return pretend(
        tmp_path,
        monkeypatch,
        """case "$*" in
          *-shared*) echo link >> "$LINKS" ;;
        esac
        while [ $# -gt 0 ]; do [ "$1" = -o ] && echo built > "$2"; shift; done""",
    )


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    script = folder / "c++"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo pretender 1.0; exit; }}\n{body}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("LINKS", str(folder / "links"))
    return script


def links(folder: Path) -> int:
    return len((folder / "links").read_text().splitlines())


def test_it_is_built_once(compiler: Path, tmp_path: Path) -> None:
    built = sidecar(tmp_path / "cache")
    assert built.read_text() == "built\n"
    assert sidecar(tmp_path / "cache") == built
    assert links(tmp_path) == 1


def test_processes_that_ask_together_build_it_once(compiler: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as workers:
        assert len(set(workers.map(sidecar, [tmp_path / "cache"] * 4))) == 1
    assert links(tmp_path) == 1


def test_other_flags_compilers_and_sources_are_other_builds(compiler: Path, tmp_path: Path) -> None:
    built = {sidecar(tmp_path), sidecar(tmp_path, extra_flags=["-g"])}
    compiler.write_text(compiler.read_text().replace("1.0", "2.0"))
    built.add(sidecar(tmp_path))
    sources = tmp_path / "src"
    sources.mkdir()
    (sources / "one.cc").write_text("int one;")
    built.add(replace(opencl.OPENCL, sources=sources).library(tmp_path))
    assert len(built) == 4


def test_what_is_installed_elsewhere_with_the_same_headers_is_linked_and_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'echo "$*" >> "$LINKS"\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && echo built > "$2"; shift; done'
    pretend(tmp_path, monkeypatch, body)
    here = recipe.CppToolchain.find()
    headers = tmp_path / "elsewhere" / "include"
    shutil.copytree(here.includes[0], headers)
    elsewhere = replace(here, includes=(headers, *here.includes[1:]), libraries=(headers.parent / "lib",))

    def asked(toolchain: recipe.CppToolchain) -> list[str]:
        monkeypatch.setattr(recipe.CppToolchain, "find", lambda: toolchain)
        (tmp_path / "links").write_text("")
        sidecar(tmp_path / "cache")
        commands = (tmp_path / "links").read_text().splitlines()
        return ["compiled" if " -c " in command else "linked" for command in commands]

    assert [asked(here), asked(elsewhere), asked(elsewhere)] == [["compiled", "linked"], ["linked"], []]
    next(headers.rglob("*.h")).write_text("another header")
    assert asked(elsewhere) == ["compiled", "linked"]


def test_nothing_is_left_of_a_build_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "echo 'device.cc:7: error: no such thing' >&2; exit 1")
    with pytest.raises(RigFailure, match="does not compile") as raised:
        sidecar(tmp_path / "cache")
    assert "device.cc:7: error" in raised.value.evidence
    assert {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()} <= {".lock"}


def test_a_build_that_was_killed_does_not_harm_the_next(compiler: Path, tmp_path: Path) -> None:
    built = sidecar(tmp_path / "cache")
    half = built.parent.rename(built.parent.with_name(f".{built.parent.name}.killed"))
    (half / built.name).write_text("half a library")
    assert sidecar(tmp_path / "cache").read_text() == "built\n"


def test_no_compiler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    with pytest.raises(SetupMissing, match=r"apt-get install .*g\+\+"):
        sidecar(tmp_path)


@pytest.mark.parametrize(
    "said",
    ["cl.h:5:10: fatal error: CL/cl.h: No such file or directory", "/usr/bin/ld: cannot find -lOpenCL: No such file"],
)
def test_no_opencl_files_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    pretend(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 1")
    with pytest.raises(SetupMissing, match=r"apt-get install .*ocl-icd-opencl-dev opencl-headers"):
        sidecar(tmp_path / "cache")


def test_a_compiler_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, monkeypatch, "exec sleep 60")
    monkeypatch.setattr(recipe, "BUILD_DEADLINE_S", 0.1)
    with pytest.raises(RigFailure, match=r"more than 0\.1 s"):
        sidecar(tmp_path / "cache")


def test_both_runtimes_are_compiled_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """case "$*" in *" -c "*) echo compile >> "$LINKS" ;; esac
        for _ in $(seq 600); do [ "$(wc -l < "$LINKS")" = 2 ] && break; sleep 0.1; done
        while [ $# -gt 0 ]; do [ "$1" = -o ] && wc -l < "$LINKS" > "$2"; shift; done"""
    pretend(tmp_path, monkeypatch, body)
    assert not host.are_compiled(tmp_path / "cache")
    made = host.libraries(tmp_path / "cache")
    assert [library.read_text() for library in made if library] == ["2\n", "2\n"]
    assert host.are_compiled(tmp_path / "cache")
    assert host.libraries(tmp_path / "cache") == made
