"""What is read from Mesa's compiler: from output of the pinned version, which `make test-isa` compares with it."""

from __future__ import annotations

import dataclasses
import json
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES
from typer.testing import CliRunner

from device_runner.failures import Failure
from harness.base import tables
from harness.base.failures import UsageError
from harness.cli import app
from harness.tools.isa import apt, kernels, pinned, runner, sandbox
from harness.tools.isa import view as isa_view
from harness.tools.isa.code import CodeChange, compare
from harness.tools.isa.failures import KernelCrash, KernelHang, KernelRefused, NoToolchain, UnknownOutput
from harness.tools.isa.kernels import CompiledKernel, compile_kernels
from harness.tools.isa.network import GpuNetwork, network
from harness.tools.isa.runner import KernelSource, parse, sources
from harness.tools.isa.statistics import Statistics
from harness.tools.isa.toolchain import MesaToolchain
from harness.tools.isa.trips import trips

RECORDED = FIXTURES / "isa"
MARK = "@mark"
KERNELS = {kernel.name: kernel for kernel in sources((RECORDED / "kernels.cl").read_text(encoding="utf-8"))}


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MesaToolchain:
    """A compiler that answers with what was recorded, and does on some sources what no compiler should."""
    program = tmp_path / "stand_in.py"
    program.write_text(STAND_IN)

    def command(_root: Path, folder: Path, _program: Path, _variables: Any, argv: Sequence[str]) -> list[str]:
        mark = argv.index(next(word for word in argv if word.startswith("@")))
        return [sys.executable, str(program), str(RECORDED), str(folder), *argv[mark:]]

    monkeypatch.setattr(sandbox, "command", command)
    return MesaToolchain(tmp_path, tmp_path, pinned.MESA, pinned.LLVM)


STAND_IN = """
import os, pathlib, sys, time
recorded, folder, mark, *files = sys.argv[1:]
lines = (pathlib.Path(recorded) / "a740.txt").read_text().splitlines()
say = lambda *texts: print(*(t.replace("@mark", mark, 1) for t in texts), sep="\\n", file=sys.stderr, flush=True)
say(lines[0])
for number, file in enumerate(files):
    text = (pathlib.Path(folder) / pathlib.Path(file).name).read_text()
    say(f"@mark begin {number}")
    if "crash" in text: say("LLVM ERROR: out of registers"); os.abort()
    if "hang" in text: time.sleep(600)
    name = text.partition("__kernel void ")[2].partition("(")[0]
    place = ["nested_loops", "unknown_trips", "array", "half_image", "refused"].index(name)
    say(*lines[lines.index(f"@mark begin {place}") + 1:lines.index(f"@mark end {place}")])
    say(f"@mark end {number}")
"""


def made(toolchain: MesaToolchain, cache: Path, *kernels: KernelSource) -> list[CompiledKernel]:
    return compile_kernels(toolchain, cache, kernels, ["a740"])["a740"]


def statistics_of(toolchain: MesaToolchain, cache: Path, name: str) -> Statistics:
    told = made(toolchain, cache, KERNELS[name])[0].statistics
    assert told
    return told


def test_a_loop_counts_as_often_as_it_runs(toolchain: MesaToolchain, tmp_path: Path) -> None:
    told = statistics_of(toolchain, tmp_path, "nested_loops")
    assert told.flops_run == 50 * 70 * 2
    assert told.bytes_run == 50 * 70 * 8 + 4
    assert told.instructions_run is not None
    assert 50 * 70 * 40 < told.instructions_run < 50 * 70 * told.instructions


def test_trips_that_depend_on_data_are_not_guessed(toolchain: MesaToolchain, tmp_path: Path) -> None:
    told = statistics_of(toolchain, tmp_path, "unknown_trips")
    assert (told.loops, told.instructions_run, told.flops_run, told.bytes_run) == (1, None, None, None)


def test_an_array_in_memory_is_no_spill(toolchain: MesaToolchain, tmp_path: Path) -> None:
    told = statistics_of(toolchain, tmp_path, "array")
    assert (told.array_bytes, told.private_bytes, told.spills) == (4 * 64, 512, 0)


def test_half_precision_and_images_are_compiled(toolchain: MesaToolchain, tmp_path: Path) -> None:
    assert statistics_of(toolchain, tmp_path, "half_image").texture_loads == 1


def test_a_refused_kernel_names_the_line_of_its_file(toolchain: MesaToolchain, tmp_path: Path) -> None:
    kernel = KERNELS["refused"]
    (one,) = made(toolchain, tmp_path, kernel)
    assert isinstance(one.failure, KernelRefused)
    assert one.failure.outcome == "kernel-build-error"
    number = 1 + [line.strip() for line in kernel.original.splitlines()].index("float4 v = vload4(0, in + 4);")
    assert f"line {number}: error: invalid operands" in str(one.failure)
    assert str(one.failure).endswith("float4 v = vload4(0, in + 4);")


def test_what_is_unchanged_is_not_compiled_again(
    toolchain: MesaToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(toolchain, tmp_path, *KERNELS.values())
    monkeypatch.setattr(runner, "run_compiler", lambda *_: pytest.fail("compiled again"))
    again = made(toolchain, tmp_path, *KERNELS.values())
    assert [one.statistics for one in again] == [one.statistics for one in first]
    assert [str(one.failure) for one in again] == [str(one.failure) for one in first]


def test_another_version_of_the_compiler_is_asked_again(toolchain: MesaToolchain, tmp_path: Path) -> None:
    made(toolchain, tmp_path, KERNELS["array"])
    made(dataclasses.replace(toolchain, llvm="1:20"), tmp_path, KERNELS["array"])
    assert len(list((tmp_path / kernels.KIND).iterdir())) == 2


def changed(kernel: KernelSource, more: str) -> KernelSource:
    return dataclasses.replace(kernel, text=f"{kernel.text}// {more}\n")


def test_a_crash_and_a_hang_are_the_outcome_of_one_kernel(
    toolchain: MesaToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "KERNEL_DEADLINE_S", 0.5)
    kernels = [KERNELS["array"], changed(KERNELS["array"], "crash"), changed(KERNELS["array"], "hang")]
    first, crash, hang, last = made(toolchain, tmp_path, *kernels, KERNELS["half_image"])
    assert first.statistics
    assert last.statistics
    assert isinstance(crash.failure, KernelCrash)
    assert "LLVM ERROR: out of registers" in str(crash.failure)
    assert isinstance(hang.failure, KernelHang)
    assert not [one for one in psutil.Process().children(recursive=True) if "stand_in.py" in " ".join(one.cmdline())]


def test_a_compiler_of_another_version_is_refused(toolchain: MesaToolchain, tmp_path: Path) -> None:
    with pytest.raises(NoToolchain, match=r"calls itself .* instead of '99'"):
        made(dataclasses.replace(toolchain, mesa="99"), tmp_path, KERNELS["array"])


LINES = (RECORDED / "a740.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (" instr, ", " instructionlets, ", "instructionlets"),
        ("; CL: outputs:", "; CL: novelties: 7", "novelties"),
        ("MESA: info: end", "MESA: info: ?!", "?!"),
        (" loops", " loops, 3 surprises", "surprises"),
        ("16 max_waves, ", "", "max_waves"),
        ("(rpt3)", "", "instructions as read here"),
        ("@mark end 0", "@mark ending", "ending"),
    ],
)
def test_output_that_is_not_known_is_an_error_that_names_it(old: str, new: str, named: str) -> None:
    until = LINES.index("@mark end 0") + 1
    lines = "\n".join(LINES[:until]).replace(old, new).splitlines()
    assert lines != LINES[:until], "the fixture has no such line"
    with pytest.raises(UnknownOutput, match=re.escape(named)):
        kernels.read_report(KERNELS["nested_loops"], "a740", parse(lines, MARK).reports[0])


def test_only_lines_with_the_secret_mark_are_ours() -> None:
    lines = [*LINES[:2], "@other end 0", "@other built 0", "@mark built -11", "@mark log", "x @mark end of log"]
    report = parse([*lines, "@mark end of log"], MARK).reports[0]
    assert (report.code, report.ended, report.log) == (-11, False, "x @mark end of log")


@given(
    begin=st.integers(-5, 20),
    step=st.integers(1, 7),
    limit=st.integers(-5, 60),
    asked_first=st.booleans(),
)
def test_trips_are_those_of_the_loop(begin: int, step: int, limit: int, asked_first: bool) -> None:
    """The counter is compared before the body, or after it has grown; the body of the latter runs at least once."""
    hexadecimal = [f"0x{number % (1 << 32):x}" for number in (begin, step, limit)]
    compared = "%1" if asked_first else "%2"
    text = f"""
    con loop {{
        con block b1: // preds: b0 b2
        con 32 %1 = phi b0: %8 ({hexadecimal[0]}), b2: %2
        con 32 %2 = iadd.nsw %1, %9 ({hexadecimal[1]})
        con 1 %3 = ige {compared}, %7 ({hexadecimal[2]})
        if %3 {{
            con block b3: // preds: b1
            break
        }} else {{
        }}
    }}"""
    runs, counter = 0, begin
    while True:
        if asked_first and counter >= limit:
            break
        counter, runs = counter + step, runs + 1
        if not asked_first and counter >= limit:
            break
    assert [one.count for one in trips(text.splitlines())] == [runs]


def networks(toolchain: MesaToolchain, cache: Path) -> tuple[GpuNetwork, GpuNetwork]:
    launches = {name: {"threads": 1000, "group": 10, "per_inference": 2} for name in KERNELS}
    one = network("case", "a740", "Mesa 1, LLVM 2", "key", made(toolchain, cache, *KERNELS.values()), launches)
    return one, one


def side(head: GpuNetwork, base: GpuNetwork | None = None) -> isa_view.CodeSide:
    against = isa_view.ComparisonBase("0.26.0" if base else "")
    return isa_view.CodeSide(head, against, base, (base.code,) if base else ())


def with_kernel(whole: GpuNetwork, name: str, **changes: Any) -> GpuNetwork:
    """The network with other statistics of one kernel."""

    def edited(kernel: Any) -> Any:
        if kernel.name != name:
            return kernel
        return dataclasses.replace(kernel, statistics=dataclasses.replace(kernel.statistics, **changes))

    return dataclasses.replace(whole, kernels=tuple(map(edited, whole.kernels)))


@pytest.mark.parametrize(
    ("changes", "change"),
    [
        ({"instructions_run": 200_000}, CodeChange.HEAVIER),
        ({"instructions_run": 100_000}, CodeChange.LIGHTER),
        ({"waves": 8}, CodeChange.HEAVIER),
        ({"spills": 3}, CodeChange.HEAVIER),
        ({"waves": 8, "instructions_run": 100_000}, CodeChange.MIXED),
        ({"instructions_run": None}, CodeChange.UNKNOWN),
    ],
)
def test_a_kernel_that_changed_is_named(
    toolchain: MesaToolchain, tmp_path: Path, changes: dict[str, Any], change: CodeChange
) -> None:
    base, head = networks(toolchain, tmp_path)
    assert compare(base.code, head.code) == []
    found = compare(base.code, with_kernel(head, "nested_loops", **changes).code)
    assert [(one.name, one.change) for one in found] == [("nested_loops", change)]


def test_a_renamed_kernel_is_found_by_its_source(toolchain: MesaToolchain, tmp_path: Path) -> None:
    base, head = networks(toolchain, tmp_path)
    kernel = head.kernels[0]
    source = KernelSource("renamed", kernel.source.text.replace("nested_loops", "renamed"), "")
    renamed = dataclasses.replace(kernel, source=source)
    assert compare(base.code, dataclasses.replace(head, kernels=(renamed, *head.kernels[1:])).code) == []


def test_an_inference_is_known_if_every_kernel_is(toolchain: MesaToolchain, tmp_path: Path) -> None:
    whole, _ = networks(toolchain, tmp_path)
    assert whole.code.per_inference("instructions_run") is None
    known = dataclasses.replace(whole, kernels=(whole.kernels[0],))
    run = statistics_of(toolchain, tmp_path, "nested_loops").instructions_run
    assert run is not None
    assert known.code.per_inference("instructions_run") == run * 1000 * 2
    assert [one.name for one in whole.code.refused] == ["refused"]


@pytest.mark.parametrize(("times", "instructions"), [(None, None), (0, 0)])
def test_a_kernel_that_is_launched_nobody_knows_how_often_is_not_one_that_never_is(
    times: int | None, instructions: int | None, toolchain: MesaToolchain, tmp_path: Path
) -> None:
    launch = {"threads": 1000, "group": 10, "per_inference": times}
    compiled = made(toolchain, tmp_path, KERNELS["nested_loops"])
    code = network("case", "a740", "Mesa 1, LLVM 2", "key", compiled, {"nested_loops": launch}).code
    assert code.per_inference("instructions") == instructions
    assert code.kernels[0].launched is (times is None)


def test_what_is_printed_fits_a_terminal_and_names_what_changed(
    toolchain: MesaToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "terminal_width", lambda *_: 80)
    base, head = networks(toolchain, tmp_path)
    heavier = with_kernel(head, "nested_loops", spills=3)
    isa_view.show(toolchain, [side(heavier, base)], [])
    isa_view.show(toolchain, [side(head)], [])
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    words = " ".join(shown.split())
    assert "nested_loops heavier" in words
    assert "0 → 3" in words
    assert "refused: kernel-build-error: the open compiler refuses it: line 4" in words
    assert toolchain.mesa in words


def test_programs_get_every_number(toolchain: MesaToolchain, tmp_path: Path) -> None:
    base, head = networks(toolchain, tmp_path)
    told = isa_view.plain(toolchain, [side(with_kernel(head, "array", waves=2), base)], [])
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    kernels = {kernel["name"]: kernel for kernel in told["cases"][0]["kernels"]}
    assert kernels["array"]["statistics"]["waves"] == 2
    assert kernels["unknown_trips"]["instructions_run_per_inference"] is None
    assert kernels["refused"]["outcome"] == "kernel-build-error"
    assert [(one["name"], one["change"]) for one in told["differences"][0]["kernels"]] == [("array", "heavier")]


def test_machine_code_is_shown_of_both_sides(toolchain: MesaToolchain, tmp_path: Path) -> None:
    base, head = networks(toolchain, tmp_path)
    alone = isa_view.assembly([side(head)], "array")
    assert "; array of case for a740" in alone
    assert "stp.u32" in alone
    assert "the same on both sides" in isa_view.assembly([side(head, base)], "array")
    with pytest.raises(UsageError, match="array"):
        isa_view.assembly([side(head)], "arra")


def test_what_cannot_be_compared_with_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match=r"0\.27"):
        isa_view.check("nothing")


def test_an_unknown_gpu_lists_the_known(toolchain: MesaToolchain, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a999") as error:
        compile_kernels(toolchain, tmp_path, [], ["a999"])
    assert "a630, " in str(error.value)


def test_without_the_compiler_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("harness.tools.isa.pinned.SHIM", str(tmp_path / "not here"))
    done = CliRunner().invoke(app, ["isa"])
    assert isinstance(done.exception, NoToolchain)
    assert "adreno-bench isa setup" in str(done.exception)


def test_without_a_sandbox_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harness.tools.isa.sandbox.shutil.which", lambda name: None if name == "bwrap" else f"/bin/{name}"
    )
    monkeypatch.setitem(sandbox._KINDS, "unshare", lambda *_: ["/bin/sh", "-c", "echo no user namespaces >&2; exit 1"])
    with pytest.raises(NoToolchain, match="bwrap is not installed; unshare: no user namespaces"):
        sandbox.kind(tmp_path, tmp_path)


def fake_tool(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("E: Version '1' for 'mesa-drm-shim' was not found", "mesa-drm-shim 1 is no longer in the archive"),
        ("E: Failed to fetch x.deb  Hash Sum mismatch", "Hash Sum mismatch"),
        ("E: The repository 'x' is not signed.", "is not signed"),
    ],
)
def test_a_download_that_fails_leaves_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    tools, folder, keyring = tmp_path / "tools", tmp_path / "folder", tmp_path / "keyring"
    tools.mkdir()
    keyring.touch()
    fake_tool(tools, "apt-get", f'case "$*" in *install*) echo "{said}" >&2; exit 100;; esac')
    fake_tool(tools, "apt-config", "true")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(Failure) as error:
        apt.unpack({"mesa-drm-shim": "1"}, ["trixie"], str(keyring), "http://archive/debian", folder, lambda _: None)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("sources_told", "named"),
    [
        ("Debian http://archive/debian-security/\nDebian http://archive/debian/", "http://archive/debian"),
        ("Ubuntu http://archive/ubuntu/", None),
    ],
)
def test_the_mirror_is_that_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources_told: str, named: str | None
) -> None:
    fake_tool(tmp_path, "apt-get", f'echo "{sources_told}"')
    fake_tool(tmp_path, "dpkg-deb", "true")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if named:
        assert apt.mirror() == named
    else:
        with pytest.raises(NoToolchain, match="--mirror"):
            apt.mirror()
