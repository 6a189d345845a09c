"""The gate of machine code, the records that it is kept in, and what a history tells of it. No compiler is needed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from history_results import Folder, both
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from device_runner.device import Loadable
from device_runner.failures import Failure
from harness.base.case import Case
from harness.base.failures import CompilerCrash, UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.cli import app
from harness.compile.artifacts.artifact import Artifact, CompileResult
from harness.judge.history.results import load
from harness.judge.history.section import HistoryView, load_sections
from harness.judge.report.site import write_site
from harness.judge.report.summary import facts, lines
from harness.judge.verdict import Verdict
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile, parse
from harness.tools.isa.code import KernelCode, MachineCode, codes_in
from harness.tools.isa.gate import exit_code, judge_code
from harness.tools.isa.history import ENDING
from harness.tools.isa.record import CompiledCase, code_record, identity_of

CASE, COMPILER = "tiny-texture-float32-untuned", "Mesa 1, LLVM 2"


def kernel(name: str = "conv", *, source: str = "", **other: Any) -> KernelCode:
    told: dict[str, Any] = {"instructions_per_inference": 100, "instructions_run_per_inference": 1000}
    told |= {"instructions": 10, "registers": 4, "waves": 16, "spills": 0} | other
    return KernelCode(name, source or f"source of {name}", str(sorted(told.items())), **told)


def code(*kernels: KernelCode, gpu: str = "a740", compiler: str = COMPILER) -> MachineCode:
    return MachineCode(gpu, compiler, kernels or (kernel(),))


@pytest.mark.parametrize(
    ("head", "verdict", "told"),
    [
        ([kernel()], Verdict.SAME, "the same code"),
        ([kernel(instructions_run_per_inference=1001)], Verdict.HEAVIER, "instructions +0.1 %: conv"),
        ([kernel(instructions_run_per_inference=900)], Verdict.LIGHTER, "instructions -10 %: conv"),
        ([kernel(waves=8)], Verdict.HEAVIER, "conv: waves 16 → 8"),
        ([kernel(spills=3)], Verdict.HEAVIER, "conv: spills 0 → 3"),
        ([kernel(waves=8, instructions_run_per_inference=10)], Verdict.HEAVIER, "conv: waves 16 → 8"),
        ([kernel(registers=5)], Verdict.SAME, "other code that counts the same: conv"),
        ([kernel(), kernel("more")], Verdict.HEAVIER, "instructions +100 %: more"),
        ([kernel("fused", source="another", instructions_run_per_inference=700)], Verdict.LIGHTER, "-30 %: conv"),
        ([kernel("renamed", source="source of conv")], Verdict.SAME, "the same code"),
        ([kernel(instructions_run_per_inference=None)], Verdict.INCONCLUSIVE, "loops are not understood"),
        ([KernelCode("conv", "source of conv", "", "refused: line 4")], Verdict.BROKEN, "refuses conv"),
        ([kernel(), KernelCode("new", "new", "", "refused: line 4")], Verdict.BROKEN, "refuses new"),
    ],
)
def test_the_gate_says_what_became_of_the_code_and_names_the_kernels(
    head: list[KernelCode], verdict: Verdict, told: str
) -> None:
    found = judge_code(CASE, [code()], code(*head))
    assert found.verdict is verdict
    assert told in found.why


def test_a_kernel_that_is_taken_again_is_fixed() -> None:
    base = code(KernelCode("conv", "source of conv", "", "refused: line 4"))
    assert judge_code(CASE, [base], code()).verdict is Verdict.FIXED


def test_a_tolerance_is_of_the_sum_and_never_of_waves() -> None:
    slightly = code(kernel(instructions_run_per_inference=1010))
    assert judge_code(CASE, [code()], slightly, 0.01).verdict is Verdict.SAME
    assert judge_code(CASE, [code()], slightly, 0.009).verdict is Verdict.HEAVIER
    assert judge_code(CASE, [code()], code(kernel(waves=15)), 1.0).verdict is Verdict.HEAVIER


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 16), st.integers(0, 9)), min_size=1, max_size=6))
def test_what_is_heavier_one_way_is_no_worse_the_other_way(numbers: list[tuple[int, int, int]]) -> None:
    """And nothing is heavier, or lighter, than itself."""
    made = [
        kernel(f"k{place}", instructions_run_per_inference=run, waves=waves, spills=spills)
        for place, (run, waves, spills) in enumerate(numbers)
    ]
    base = code(*[kernel(one.name) for one in made])
    there, back = judge_code(CASE, [base], code(*made)), judge_code(CASE, [code(*made)], base)
    assert judge_code(CASE, [base], base).verdict is Verdict.SAME
    if there.verdict is Verdict.LIGHTER:
        assert back.verdict is Verdict.HEAVIER
    if there.verdict is Verdict.SAME:
        assert back.verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (code(compiler="Mesa 9, LLVM 2"), "by Mesa 9, LLVM 2, which is another series, and is never compared"),
        (code(gpu="a630"), "no code for a740"),
    ],
)
def test_another_version_of_the_compiler_is_never_compared(other: MachineCode, why: str) -> None:
    found = judge_code(CASE, [other], code(kernel(spills=9)))
    assert found.verdict is Verdict.NEW
    assert why in found.why
    assert exit_code([found]) is ExitCode.NOTHING_MEASURED


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], ExitCode.NOTHING_MEASURED),
        ([Verdict.NEW], ExitCode.NOTHING_MEASURED),
        ([Verdict.SAME, Verdict.NEW], ExitCode.GOOD),
        ([Verdict.LIGHTER], ExitCode.GOOD),
        ([Verdict.INCONCLUSIVE, Verdict.SAME], ExitCode.UNDECIDED),
        ([Verdict.HEAVIER, Verdict.INCONCLUSIVE], ExitCode.SLOWER),
        ([Verdict.HEAVIER, Verdict.BROKEN], ExitCode.WRONG_OR_BROKEN),
    ],
)
def test_exit_codes_are_those_of_any_gate(verdicts: list[Verdict], expected: ExitCode) -> None:
    found = judge_code(CASE, [code()], code())
    assert exit_code(dataclasses.replace(found, verdict=verdict) for verdict in verdicts) is expected


def a_code_record(*codes: MachineCode, failure: Failure | None = None) -> Record:
    """The record of a case that was compiled, and not run."""
    compiled = CompileResult("lib.so", 1, [], 1, [], {"kernels": 1}, 1.0)
    made = Artifact("key", Loadable(Path("lib.so"), "0" * 64, 1), compiled, 10, reused=False)
    built = CompiledCase(Case.parse(CASE), failure or made, ("a-quirk",))
    return code_record(built, codes, None, COMPILER, as_shipped=False, run="run")


def test_a_record_of_machine_code_is_read_back_and_no_other_command_takes_it_for_a_run(tmp_path: Path) -> None:
    record = a_code_record(code(), code(gpu="a630"))
    assert parse(record.line().encode()) == record
    assert (record.outcome, record.device, record.quirks, record.facts) == (
        Outcome.OK,
        "none",
        ("a-quirk",),
        {"kernels": 1},
    )
    assert record.identity.key != identity_of("Mesa 9, LLVM 2").key
    file = tmp_path / "records.jsonl"
    RecordFile(file).append(record)
    with RecordIndex(file) as index:
        assert list(index.newest(lambda _: True)) == []
        assert list(index.newest_builds(lambda _: True)) == []
        assert index.devices == []
        assert index.every(lambda _: True) == [record]
    done = CliRunner().invoke(app, ["show", "--records", str(file)])
    assert isinstance(done.exception, UsageError)
    assert "only sustained runs or machine code" in str(done.exception)


def test_a_case_that_is_not_built_has_a_record_too() -> None:
    record = a_code_record(failure=CompilerCrash("it died"))
    assert (record.outcome, record.message, codes_in(record)) == (Outcome.COMPILER_CRASH, "it died", ())


def test_a_gate_without_its_baseline_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["isa", "gate"])
    assert isinstance(done.exception, UsageError)
    assert "`adreno-bench isa --records baselines/isa.jsonl` makes it" in str(done.exception)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Four commits: the second has heavier code, the last another compiler for one GPU."""
    folder = Folder(tmp_path / "results")
    heavy = code(kernel(instructions_run_per_inference=2000))
    for codes in ([code()], [heavy], [heavy], [heavy, code(gpu="a630", compiler="Mesa 9, LLVM 2")]):
        file = folder.commit(both(CASE, 10.0, 10.0))
        RecordFile(file.with_suffix(ENDING)).append(a_code_record(*codes))
    return folder.path


def test_a_history_tells_what_became_of_the_code_and_between_which_commits(results: Path, tmp_path: Path) -> None:
    history = load(results)
    section = next(one for one in load_sections(HistoryView(results, history, [])) if one.name == "machine_code")
    first, other = section.notes
    machine, commits = first.machine, history.commits[first.machine]
    assert (first.case, first.moved) == (CASE, Verdict.HEAVIER)
    assert first.facts["moved"]["since"] == commits[0]
    assert first.facts["moved"]["at"] == commits[1]
    assert (other.facts["gpu"], other.moved) == ("a630", None)
    told = "\n".join(lines(history, markdown=False, sections=[section]))
    assert f"heavier {CASE} for a740 ({machine}): instructions +100 %: conv" in told
    assert [one["gpu"] for one in facts(history, [section])["machine_code"]] == ["a740", "a630"]
    (html := tmp_path / "html").mkdir()
    write_site(history, html, "graphs.html", results)
    front = (html / "index.html").read_text(encoding="utf-8")
    assert front.count("a740: 0 M instructions, 16 waves") == 1, "beside the series with workarounds, and no other"
    assert "heavier here" in front
    assert "Mesa 9, LLVM 2" in front
