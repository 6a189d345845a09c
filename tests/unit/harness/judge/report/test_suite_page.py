"""The page of a run, a gate or a comparison, as text; tests/e2e/test_report_page.py draws it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import a_record, sessions
from msgspec import structs
from typer.testing import CliRunner

from device_runner.device import Identity
from harness.base.failures import UsageError
from harness.base.outcome import CaseState, ExitCode, Outcome
from harness.cli import app
from harness.compile.compiler.tir import OperatorWork
from harness.judge.compare import ComparisonResult, KernelChange, compare_sides
from harness.judge.report.comparison import export_comparison, read_comparison
from harness.judge.report.exports import csv_text, json_text
from harness.judge.report.matrix import entries_of, markdown, matrices_of
from harness.judge.report.sections import BuildKey
from harness.judge.report.suite_page import clocks_of, conclusions_of, write_report
from harness.judge.sides import sides_of
from harness.measure.facts import Batches
from harness.measure.records.record import Record
from harness.tools.explain.first_wrong import FirstWrong, append_first_wrong, file_beside
from harness.tools.profile.measure import append_profile
from harness.tools.shared.kernels.profile import Operator, Peaks, Profile, kernels_file
from harness.tools.sustain.part import Sustained

OPENCL, TEXTURE, CLML = (f"tiny-{path}-float32-untuned" for path in ("opencl", "texture", "clml"))
HOSTILE = "<script>alert(1)</script>"
PHONE = Identity("phone", "R5CT30ABCDE", soc="SM8650", gpu=f"Adreno {HOSTILE}", driver='"><img src=x>')


def wrong(case: str = TEXTURE, **facts: Any) -> Record:
    known: dict[str, Any] = {
        "outcome": Outcome.WRONG_RESULT,
        "message": f"off by 3 {HOSTILE}",
        "max_abs_err": 3.0,
        "tolerance": 0.01,
    }
    return a_record(case, **{**known, **facts})


def page_of(folder: Path, *builds: Sequence[Record]) -> str:
    write_report(folder / "report.html", builds)
    return (folder / "report.html").read_text("utf-8")


def write(file: Path, records: Sequence[Record]) -> Path:
    file.write_text("".join(record.line() + "\n" for record in records))
    return file


def test_the_matrix_says_which_path_is_fastest_and_which_is_wrong() -> None:
    builds = [sessions(10, case=OPENCL), [wrong()], sessions(5, case=CLML)]
    (matrix,) = matrices_of(entries_of(builds))
    assert matrix.paths == ["opencl", "texture", "clml"]
    opencl, texture, clml = matrix.entries
    assert (opencl.fastest, clml.fastest, texture.fastest) == (False, True, False)
    assert opencl.speedup is None
    assert clml.speedup == pytest.approx(2, rel=0.05)
    assert (texture.state, texture.wall_ms) == (CaseState.WRONG, None)
    assert texture.error_share == pytest.approx(300)
    assert "clml wins" in conclusions_of(matrix.rows[0])[0]
    (once,) = matrices_of(entries_of([build[:1] for build in builds]))
    assert conclusions_of(once.rows[0]) == ["no sure winner"]


def test_a_path_that_built_what_opencl_builds_is_neither_faster_nor_fastest() -> None:
    same = sessions(5, case="tiny-texture-float32-untuned", facts={"image_kernels": 0})
    (matrix,) = matrices_of(entries_of([sessions(10, case=OPENCL), same]))
    assert [(entry.speedup, entry.fastest) for entry in matrix.entries] == [(None, False), (None, False)]
    assert [round(entry.share, 1) for entry in matrix.entries] == [1.0, 0.5]


def test_a_quick_look_is_neither_faster_nor_fastest() -> None:
    quick = sessions(5, case=CLML, quick=True)
    (matrix,) = matrices_of(entries_of([sessions(10, case=OPENCL), quick]))
    assert [(entry.speedup, entry.fastest) for entry in matrix.entries] == [(None, False), (None, False)]
    assert all(entry.wall_ms for entry in matrix.entries)


def test_what_most_cases_are_is_said_once_below_the_matrix_on_the_page_and_in_markdown(tmp_path: Path) -> None:
    busy = [a_record(case, wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0]) for case in (OPENCL, CLML)]
    steady = a_record("tiny-texture-float32-untuned")
    for records, who in ((busy, "both cases"), ([*busy, steady], "all but tiny-texture-float32-untuned")):
        file, line = write(tmp_path / "records.jsonl", records), f"{who} are unsteady: half of the samples"
        for name in ("r.html", "r.md"):
            done = CliRunner().invoke(app, ["report", "--records", str(file), "--out", str(tmp_path / name)])
            assert done.exit_code == ExitCode.GOOD, done.output
            matrix = (tmp_path / name).read_text("utf-8").partition("<article")[0]
            assert line in matrix
            assert matrix.count("unsteady") == 1
    (one,) = matrices_of(entries_of([busy[:1], [steady]]))
    assert [one.remarks(entry) for entry in one.entries] == [["unsteady"], []]
    assert " unsteady |" in markdown([one])


def test_no_latency_of_an_emulated_path_is_shown_or_compared() -> None:
    emulated = sessions(1, case=CLML, emulated=("clml",))
    (matrix,) = matrices_of(entries_of([sessions(10, case=OPENCL), emulated]))
    assert matrix.entries[1].remarks == ["emulated"]
    assert [(entry.wall_ms is None, entry.fastest) for entry in matrix.entries] == [(False, False), (True, False)]


def test_what_is_wrong_or_broken_comes_first_and_devices_stand_apart() -> None:
    other = Identity("phone", "other", gpu="Adreno 660")
    builds = [
        sessions(10, case="a-opencl-float32-untuned"),
        [wrong("b-opencl-float32-untuned")],
        sessions(10, case=OPENCL, identity=other),
    ]
    rows = [[row.model for row in matrix.rows] for matrix in matrices_of(entries_of(builds))]
    assert sorted(rows) == [["b", "a"], ["tiny"]]


def test_texts_of_others_are_escaped_and_no_serial_is_published(tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "identity": PHONE,
        "device": PHONE.serial,
        "hint": HOSTILE,
        "evidence": HOSTILE,
        "judge": HOSTILE,
    }
    text = page_of(tmp_path, [wrong(**facts)], sessions(10, case=OPENCL, **facts))
    assert HOSTILE not in text
    assert "<img" not in text
    assert text.count("<script>") == 2  # the filter and the buttons that copy
    assert PHONE.serial not in text
    assert "adreno-bench run --device soc=SM8650 --case tiny-texture-float32-untuned" in text
    unnamed = sessions(10, case=OPENCL, identity=replace(PHONE, soc=""), device=PHONE.serial)
    assert PHONE.serial not in page_of(tmp_path, unnamed)


def test_the_title_says_what_whoever_gets_the_page_looks_at(tmp_path: Path) -> None:
    other = Identity("phone", "other", gpu="Adreno 660")
    one, both = [sessions(10, case=OPENCL)], [sessions(10, case=OPENCL), [wrong(identity=other)]]
    assert f"<h1>1 case on {one[0][0].identity.gpu or 'phone'}, TVM {one[0][0].tvm}</h1>" in page_of(tmp_path, *one)
    text = page_of(tmp_path, *both)
    assert "<h1>2 cases on 2 devices, TVM" in text
    (anchor,) = re.findall(r'<a href="#([^"]*)">Adreno 660</a>', text)
    assert f'<h2 id="{anchor}">' in text


def test_the_first_wrong_operator_stands_beside_the_build_it_was_found_in(tmp_path: Path) -> None:
    base, head = sessions(5, 8, case=TEXTURE), wrong(artifact="b" * 24)
    old, now = write(tmp_path / "base.jsonl", base), write(tmp_path / "head.jsonl", [head])
    out = tmp_path / "r.html"
    words = ["report", "--records", str(now), "--compare", str(old), "--out", str(out)]
    for build, shown in ((BuildKey.of(base[0]), False), (BuildKey.of(head), True)):
        append_first_wrong(now, FirstWrong(build=build, sentences=(f"It is Conv {HOSTILE}, 5 of 69.", "It reads x.")))
        done = CliRunner().invoke(app, words)
        assert done.exit_code == ExitCode.GOOD, done.output
        text = out.read_text("utf-8")
        shares = text.count("5 of 69"), text.count("It reads x.")
        assert shares == ((2, 1) if shown else (0, 0)), "its verdict has the first line, its case has both"
    assert HOSTILE not in text
    file_beside(now).write_text("torn")
    assert "skipped the first wrong operators" in CliRunner().invoke(app, words).output


def test_a_side_without_a_latency_says_what_it_is(tmp_path: Path) -> None:
    base, head = (wrong(artifact=artifact) for artifact in ("a" * 24, "b" * 24))
    compared = export_comparison(compare_sides(sides_of([base]), sides_of([head])))
    write_report(tmp_path / "r.html", [[head]], compared)
    text = (tmp_path / "r.html").read_text("utf-8")
    for side in ("Base", "Head"):
        assert f'data-name="{side}"><span class="wrong">✗ wrong</span>' in text


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    text = page_of(tmp_path, sessions(10, case=OPENCL))
    assert not re.search(r"@import|url\(|https?://|<link(?! rel=\"icon\" href=\"data:,\")|<img| src=", text)


def test_what_is_emulated_is_said_aloud_once_for_each_device(tmp_path: Path) -> None:
    text = page_of(tmp_path, sessions(10, case=OPENCL, emulated=("soc", "clocks")))
    assert text.count('class="banner"') == 1
    assert "Emulated here: soc, clocks" in text


def test_a_case_shows_what_its_record_knows(tmp_path: Path) -> None:
    known: dict[str, Any] = {
        "parts": [Batches(8, [4.0] * 5, [], None)],
        "first_run_ms": 900.0,
        "init_ms": 44.0,
        "library_bytes": 17_900_000,
    }
    text = page_of(tmp_path, sessions(10, case=OPENCL, device_ms=[9.0, 9.1, 9.2], **known))
    for told in ("250 /s in batches of 8", "900 ms", "44 ms", "17.9 MB", "p99", "<figcaption>device"):
        assert told in text, told
    assert "40 samples of wall time in 4 sessions" in text


def test_a_quick_look_is_not_among_the_samples_of_a_case_that_was_measured(tmp_path: Path) -> None:
    quick = sessions(50, 2, case=OPENCL, quick=True)
    text = page_of(tmp_path, [*sessions(10, case=OPENCL), *quick])
    assert "40 samples of wall time in 4 sessions" in text
    assert "20 samples of wall time in 2 sessions" in page_of(tmp_path, quick)
    assert "✗ 1 wrong" in page_of(tmp_path, [*sessions(10, case=OPENCL), wrong(OPENCL, quick=True)])


def test_a_workaround_that_changed_nothing_is_not_named(tmp_path: Path) -> None:
    some = sessions(10, case=OPENCL, quirks=("tir-pipeline-tuple", "stack-layout"), effective_quirks=("stack-layout",))
    text = page_of(tmp_path, some)
    assert text.count("<dt>workarounds</dt><dd>stack-layout</dd>") == 2


def profile(artifact: str, ms: float) -> Profile:
    operator = Operator(function="fused_conv2d", kernels=("k",), launches=1, ms=ms, threads=64)
    about: dict[str, Any] = {"case": OPENCL, "identity_key": "k", "gpu": "G", "tvm": "0.27.0", "artifact": artifact}
    return Profile(**about, operators=(operator,), kernels_ms=ms, span_ms=ms, wall_ms=ms)


def test_kernels_stand_in_the_section_of_the_build_that_was_profiled(tmp_path: Path) -> None:
    records = write(tmp_path / "records.jsonl", sessions(10, case=OPENCL))
    append_profile(kernels_file(records), profile("a" * 24, 9.0))
    done = CliRunner().invoke(app, ["report", "--records", str(records), "--out", str(tmp_path / "r.html")])
    assert done.exit_code == ExitCode.GOOD, done.output
    assert "conv2d" in (tmp_path / "r.html").read_text("utf-8")


def test_a_profile_that_is_given_has_a_roofline_if_the_peaks_are_known(tmp_path: Path) -> None:
    records = write(tmp_path / "records.jsonl", sessions(10, case=OPENCL))
    work = OperatorWork("fused_conv2d", [[1, 4]], 180_000, 9_000_000, None)
    operator = profile("", 9.0).operators[0].model_copy(update={"work": work, "function": HOSTILE})
    known = profile("a" * 24, 9.0).model_copy(update={"operators": (operator,)})
    told = {}
    for name, peaks in (("none", Peaks()), ("both", Peaks(copy_gb_s=50.0, float32_gflop_s=100.0))):
        file, out = tmp_path / f"{name}.json", tmp_path / f"{name}.html"
        file.write_text(known.model_copy(update={"peaks": peaks}).model_dump_json(by_alias=True))
        words = ["report", "--records", str(records), "--profile", str(file), "--out", str(out)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == ExitCode.GOOD, done.output
        told[name] = out.read_text("utf-8")
    assert "<figcaption>roofline" not in told["none"]
    assert "1 GFLOP/s, 1.0% of the roof, 100% of the time" in told["both"]  # 9 M operations in 9 ms, 100 at best
    assert HOSTILE not in told["both"]


def test_a_profile_of_another_build_is_named_and_not_shown(tmp_path: Path) -> None:
    records = write(tmp_path / "records.jsonl", sessions(10, case=OPENCL))
    other = tmp_path / "other.json"
    other.write_text(profile("b" * 24, 9.0).model_dump_json(by_alias=True))
    words = ["report", "--records", str(records), "--profile", str(other), "--out", str(tmp_path / "r.html")]
    done = CliRunner().invoke(app, words)
    assert f"{other} is the profile of another build of {OPENCL}" in done.output
    assert "<summary>Kernels" not in (tmp_path / "r.html").read_text("utf-8")


def test_the_energy_of_a_run_without_a_pause_stands_in_the_case_of_its_build(tmp_path: Path) -> None:
    columns = {"at_s": [0, 10, 20], "wall_ms": [10.0, 11.0, 12.0], "p90_ms": [10.0] * 3, "inferences": [900, 800, 800]}
    battery = {"charge_uah": [4_000_000, 3_999_000, 3_998_000], "voltage_mv": [4000, 4000, 4000]}
    unpaused = Sustained(asked_s=30, lasted_s=30, columns={**columns, **battery})
    one = a_record(OPENCL, standalone=True, parts=[unpaused], wall_ms=[])
    for artifact, shown in ((one.artifact, True), ("b" * 24, False)):
        records = [*sessions(10, case=OPENCL), one.model_copy(update={"artifact": artifact})]
        file = write(tmp_path / f"{artifact}.jsonl", records)
        out = tmp_path / f"{artifact}.html"
        assert CliRunner().invoke(app, ["report", "--records", str(file), "--out", str(out)]).exit_code == 0
        text = out.read_text("utf-8")
        assert ("mJ for an inference" in text) is shown
        assert ("10 ms in the first 15 s, 12 ms in the last (1.20 times)" in text) is shown


def test_a_slower_case_says_which_kernels_if_both_builds_were_profiled(tmp_path: Path) -> None:
    base = write(tmp_path / "base.jsonl", sessions(10, 8, case=OPENCL))
    head = write(tmp_path / "head.jsonl", sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24))
    out = tmp_path / "r.html"
    words = ["report", "--records", str(head), "--compare", str(base), "--out", str(out)]
    append_profile(kernels_file(head), profile("b" * 24, 12.0))
    assert CliRunner().invoke(app, words).exit_code == ExitCode.GOOD
    assert "Kernels that account" not in out.read_text("utf-8")
    append_profile(kernels_file(base), profile("a" * 24, 9.0))
    assert CliRunner().invoke(app, words).exit_code == ExitCode.GOOD
    text = out.read_text("utf-8")
    assert "Kernels that account" in text
    assert "+3 ms" in text


def test_the_kernels_that_a_gate_watched_are_shown_from_its_file(tmp_path: Path) -> None:
    base, head = sessions(10, 8, case=OPENCL), sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24)
    result = compare_sides(sides_of(base), sides_of(head))
    watched = structs.replace(
        result.cases[0], kernels=(KernelChange(f"conv2d {HOSTILE}", 6.0, 9.0, (1, 2), "changed"),)
    )
    gate = tmp_path / "gate.json"
    export = export_comparison(ComparisonResult([watched]))
    gate.write_text(json_text(export))
    assert "conv2d" not in csv_text(export.cases)
    write_report(tmp_path / "r.html", [head], read_comparison(gate))
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "Kernels that account" in text
    assert "+3 ms" in text
    assert "All kernels took 6 ms at base and 9 ms at head" in text
    assert HOSTILE not in text


def test_a_comparison_is_drawn_worst_first_from_records_as_from_the_json_of_a_gate(tmp_path: Path) -> None:
    base = write(tmp_path / "base.jsonl", [*sessions(10, 8, case=OPENCL), *sessions(5, 8, case=TEXTURE)])
    head = write(
        tmp_path / "head.jsonl",
        [*sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24), wrong(artifact="b" * 24)],
    )
    told = CliRunner().invoke(app, ["compare", str(base), str(head), "--json"])
    assert told.exit_code == ExitCode.WRONG_OR_BROKEN
    gate = tmp_path / "gate.json"
    gate.write_text(told.stdout)
    assert [one.verdict.value for one in read_comparison(gate).worst_first] == ["wrong", "slower"]
    without_end = re.sub(r'"relative": -?[0-9.]+', '"relative": Infinity', told.stdout)
    assert without_end != told.stdout
    (tmp_path / "endless.json").write_text(without_end)
    with pytest.raises(UsageError, match="not a result of gate or compare"):
        read_comparison(tmp_path / "endless.json")
    pages = []
    for words in (["--compare", str(base)], ["--gate", str(gate)]):
        out = tmp_path / "report.html"
        done = CliRunner().invoke(app, ["report", "--records", str(head), *words, "--out", str(out)])
        assert done.exit_code == ExitCode.GOOD, done.output
        pages.append(out.read_text("utf-8"))
    assert pages[0] == pages[1]
    assert '<strong class="wrong-or-broken">' in pages[0]
    assert len(re.findall('class="forest slower"', pages[0])) == 1


def test_a_series_of_several_files_is_one_case_of_its_newest_build(tmp_path: Path) -> None:
    late = {"started_at": "2026-02-01T00:00:00.000+00:00", "artifact": "b" * 24}
    files = [write(tmp_path / f"{n}.jsonl", sessions(10, 3, n, case=OPENCL, **(late if n else {}))) for n in (1, 0)]
    words = [word for file in files for word in ("--records", str(file))]
    done = CliRunner().invoke(app, ["report", *words, "--out", str(tmp_path / "r.html")])
    assert done.output.startswith(f"{tmp_path / 'r.html'}: 1 case,")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert text.count("<article") == 1
    assert "30 samples of wall time in 3 sessions" in text


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 2}', "[" * 100_000])
def test_a_file_that_no_gate_wrote_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "gate.json").write_text(content)
    with pytest.raises(UsageError, match="not a result of gate or compare"):
        read_comparison(tmp_path / "gate.json")


def test_cases_and_models_are_chosen_and_none_is_an_error(tmp_path: Path) -> None:
    records = write(
        tmp_path / "r.jsonl", [*sessions(10, case=OPENCL), *sessions(10, case="other-opencl-float32-untuned")]
    )
    out = tmp_path / "r.html"
    words = ["report", "--records", str(records), "--out", str(out)]
    assert CliRunner().invoke(app, [*words, "--model", "nets/other.onnx"]).exit_code == ExitCode.GOOD
    assert "other" in out.read_text("utf-8").partition("<main>")[2]
    assert CliRunner().invoke(app, [*words, "--model", "other"]).exit_code == ExitCode.GOOD
    assert "tiny" not in out.read_text("utf-8").partition("<main>")[2]
    failed = CliRunner().invoke(app, [*words, "--model", "nobody"])
    assert isinstance(failed.exception, UsageError)


def test_markdown_is_one_table_for_each_device_in_which_nothing_is_markup() -> None:
    builds = [sessions(10, case=OPENCL), sessions(5, case=CLML), [wrong(message="a|b")]]
    text = markdown(matrices_of(entries_of(builds)))
    assert "| model   | opencl" in text
    assert re.search(r"\*\*✓ right \d\.\d+ ms [12]\.\d+ x opencl\*\*", text)
    assert "✗ wrong error 3 (right up to 0.01)" in text


def test_the_page_says_when_it_was_measured_why_a_cell_is_broken_and_what_was_worked_around(tmp_path: Path) -> None:
    why = {"outcome": Outcome.COMPILE_ERROR, "message": "TVM failed to lower the model: Divide by zero"}
    broken = a_record(CLML, **why, quirks=[f"quirk-{number}" for number in range(43)], effective_quirks=None)
    text = page_of(tmp_path, sessions(10, case=OPENCL), [broken])
    assert "Measured 20" in text
    assert "compile-error: TVM failed to lower the model: Divide by zero" in text
    assert "43 were active" in text
    assert "quirk-42" not in text
    assert '<button type="button" class="copy"' in text


def test_few_samples_have_no_p99_and_both_clocks_one_scale(tmp_path: Path) -> None:
    both = a_record(OPENCL, wall_ms=[4.0, 5.0, 6.0] * 4, device_ms=[1.0, 2.0, 3.0] * 4)
    (entry,) = entries_of([[both]])
    assert {clock.scale_ms for clock in clocks_of(entry)} == {(1.0, 6.0)}
    assert 'data-name="p99"' not in page_of(tmp_path, [both])
    assert 'data-name="p99"' in page_of(tmp_path, [a_record(OPENCL, wall_ms=[4.0, 5.0] * 60)])


def test_the_page_of_a_gate_has_the_cases_that_were_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "records.jsonl", [*sessions(10, case=OPENCL), *sessions(5, case=CLML)])
    judged = compare_sides(sides_of(sessions(10, case=OPENCL)), sides_of(sessions(10, case=OPENCL)))
    (tmp_path / "gate.json").write_text(json.dumps(export_comparison(judged).plain()))
    done = CliRunner().invoke(app, ["report", "--gate", "gate.json"])
    assert done.exit_code == 0, done.output
    assert "report.html: 1 case," in done.output
