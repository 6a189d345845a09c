"""`bless`, `gate --from` and `compare` as a person types them; no device is needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fake_records import IDENTITY, a_record, blessing_of, sessions
from typer.testing import CliRunner

from device_runner.device import Identity
from device_runner.failures import Failure
from harness.base.outcome import ExitCode, Outcome
from harness.cli import app
from harness.judge.gate import AS_SHIPPED, NO_RECORD, OTHER_IDENTITY, SUSTAINED, WORKED_AROUND
from harness.judge.noise import PROFILES, NoiseProfile
from harness.judge.sides import model_of
from harness.judge.stats.pair import Rules
from harness.measure.records.record import Record
from harness.tools.calibrate.calibration import profile_of
from harness.tools.sustain.part import Sustained

CASE, OTHER = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"
NEW_DRIVER = Identity("phone", "serial", gpu="Adreno740", driver="2")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bench(*arguments: str) -> tuple[int, str]:
    """Exit code, and all that was printed; a Failure is what the command line makes one line of."""
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, Failure):
        assert done.exception.outcome == "usage"
        return ExitCode.USAGE, f"{done.output}{done.exception}"
    return done.exit_code, done.output


def write(file: Path, records: Sequence[Record]) -> Path:
    file.write_text("".join(record.line() + "\n" for record in records))
    return file


def test_what_was_blessed_gates_what_comes_after(tmp_path: Path) -> None:
    write(tmp_path / "good.jsonl", [*sessions(10), *sessions(5, case=OTHER)])
    code, out = bench("bless", "--records", "good.jsonl")
    assert code == ExitCode.GOOD
    assert out.count("written") == 2
    assert bench("bless", "--records", "good.jsonl")[1].count("unchanged") == 2

    code, out = bench("gate", "--from", "good.jsonl")
    assert (code, out.count(" same ")) == (ExitCode.GOOD, 2)

    write(tmp_path / "slow.jsonl", [*sessions(13, seed=1, artifact="b"), *sessions(5, seed=1, case=OTHER)])
    code, out = bench("gate", "--from", "slow.jsonl")
    assert code == ExitCode.SLOWER, out
    assert f"{CASE}" in out

    write(tmp_path / "once.jsonl", sessions(13, 1, seed=1, artifact="b"))
    code, out = bench("gate", "--from", "once.jsonl")
    assert code == ExitCode.UNDECIDED
    assert out.splitlines()[-1].startswith(f"undecided: {CASE} looks slower (+")
    assert "a gate without --from measures again" in out
    assert "which one session cannot prove" in out
    assert "gone" in out

    wrong = a_record(outcome=Outcome.WRONG_RESULT, message="output 0 is off by 3", as_shipped=True)
    write(tmp_path / "wrong.jsonl", [wrong])
    assert bench("bless", "--records", "wrong.jsonl")[0] == ExitCode.USAGE, "what ran as shipped is no baseline"
    code, out = bench("gate", "--from", "wrong.jsonl", "--as-shipped")
    assert code == ExitCode.WRONG_OR_BROKEN
    assert "wrong-result: output 0 is off by 3 (base: ok)" in out


def test_a_suspicion_that_stays_open_is_noticed_beside_a_case_that_is_decided(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", [*sessions(10), *sessions(5, case=OTHER)])))
    once = sessions(13, 1, seed=1, artifact="b")
    write(tmp_path / "once.jsonl", [*once, *sessions(5, 8, seed=1, artifact="b", case=OTHER)])
    code, out = bench("gate", "--from", "once.jsonl", "--relevant", "5")
    assert (code, " same " in out) == (ExitCode.UNDECIDED, True), out
    told = json.loads(bench("gate", "--from", "once.jsonl", "--json")[1])
    assert [case["suspicion"] for case in told["cases"] if case["case"] == CASE] == ["slower"]


def test_records_are_compared_by_the_same_engine_and_in_the_same_words(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", [*sessions(10, 1), *sessions(5, 1, case=OTHER)])
    head = [*sessions(13, 1, seed=1, artifact="b"), *sessions(5, 1, seed=1, artifact="b", case=OTHER)]
    write(tmp_path / "head.jsonl", head)
    code, out = bench("compare", "base.jsonl", "head.jsonl")
    assert code == ExitCode.UNDECIDED
    assert "which one session cannot prove; what was measured before cannot be measured in turns" in out
    assert out.splitlines()[-1].startswith(f"undecided: {CASE} looks slower (+")
    assert bench("compare", "base.jsonl", "head.jsonl", "--markdown")[1].splitlines()[-1].startswith("* undecided: ")
    assert bench("compare", "base.jsonl", "head.jsonl", "--case", OTHER)[0] == ExitCode.NOTHING_MEASURED


def test_a_baseline_of_another_identity_is_never_compared(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", sessions(10))))
    write(tmp_path / "new.jsonl", sessions(30, identity=NEW_DRIVER))
    code, out = bench("gate", "--from", "new.jsonl")
    assert code == ExitCode.NOTHING_MEASURED
    assert f"no baseline: {CASE} (`adreno-bench bless` makes one)" in out
    assert f"baselines of another identity are never compared: {IDENTITY.key}" in out


def not_compared(file: Path, *words: str) -> list[tuple[str, bool, str]]:
    """The case, whether it ran as shipped, and the reason of all that a gate leaves out, as JSON has it."""
    told = json.loads(bench("gate", "--from", str(file), "--json", *words)[1])["not_compared"]
    return [(one["case"], one["as_shipped"], one["reason"]) for one in told]


def test_what_ran_as_shipped_is_not_compared_for_that_reason_alone(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", [*sessions(10), *sessions(5, case=OTHER)])))
    shipped = write(tmp_path / "shipped.jsonl", sessions(10, as_shipped=True))
    code, out = bench("gate", "--from", "shipped.jsonl")
    assert code == ExitCode.NOTHING_MEASURED
    assert "another identity" not in out
    assert f"not compared: {CASE} as shipped: {AS_SHIPPED}" in out
    assert f"not compared: {OTHER}: {NO_RECORD}" in out
    assert out.startswith("nothing was compared")
    assert not_compared(shipped) == [(CASE, True, AS_SHIPPED), (OTHER, False, NO_RECORD)]
    assert bench("gate", "--from", "shipped.jsonl", "--as-shipped")[1].count(" same ") == 1
    assert not_compared(tmp_path / "good.jsonl", "--as-shipped", "--case", CASE) == [(CASE, False, WORKED_AROUND)]


def test_what_ran_without_a_pause_is_not_compared_for_that_reason(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", sessions(10))))
    run = write(tmp_path / "run.jsonl", [a_record(wall_ms=[], standalone=True, parts=[Sustained(asked_s=600)])])
    assert not_compared(run) == [(CASE, False, SUSTAINED)]
    assert not_compared(write(tmp_path / "new.jsonl", sessions(30, identity=NEW_DRIVER))) == [
        (CASE, False, OTHER_IDENTITY)
    ]


def test_base_and_head_of_two_handsets_are_not_compared_and_named(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "one.jsonl", sessions(10))))
    write(tmp_path / "other.jsonl", sessions(30, identity=replace(IDENTITY, serial="another")))
    named = f"{model_of(IDENTITY.key)} ran on two handsets, which are two series"
    for command in (("gate", "--from", "other.jsonl"), ("compare", "one.jsonl", "other.jsonl")):
        code, out = bench(*command)
        assert (code, named in out) == (ExitCode.NOTHING_MEASURED, True), out


def test_a_noise_profile_that_was_edited_ends_the_gate_in_one_line(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", sessions(10))))
    made = profile_of(sessions(10, 16), Rules())
    assert isinstance(made, NoiseProfile)
    made.save(Path("baselines") / PROFILES)
    (file,) = (Path("baselines") / PROFILES).glob("*/*.json")
    file.write_text(file.read_text().replace('"sd": 0.0', '"sd": 0.00'))
    code, out = bench("gate", "--from", "good.jsonl")
    assert (code, "was edited by hand since it was written: take it from" in out) == (ExitCode.USAGE, True)


def test_an_emulated_latency_is_blessed_only_if_asked_for_and_gated_with_a_warning(tmp_path: Path) -> None:
    pocl = Identity("virtual", "x", gpu="PoCL", emulated=("gpu",))
    write(tmp_path / "good.jsonl", sessions(10, identity=pocl))
    assert "correctness only" in bench("bless", "--records", "good.jsonl")[1]
    code, out = bench("bless", "--records", "good.jsonl", "--emulated")
    assert (code, "latency, sessions: 4" in out) == (ExitCode.GOOD, True)
    write(tmp_path / "slow.jsonl", sessions(13, seed=1, artifact="b", identity=pocl))
    code, out = bench("gate", "--from", "slow.jsonl")
    assert code == ExitCode.SLOWER, out
    assert "not the real thing: gpu; these times say nothing about a phone" in out


def test_bless_says_what_it_refuses_and_the_shell_knows_whose_it_is(tmp_path: Path) -> None:
    records = [*sessions(10), a_record(OTHER, outcome=Outcome.WRONG_RESULT, message="off by 3")]
    code, out = bench("bless", "--records", str(write(tmp_path / "r.jsonl", records)))
    assert code == ExitCode.WRONG_OR_BROKEN
    assert "refused" in out
    assert "wrong-result: off by 3" in out
    assert not (tmp_path / "baselines" / IDENTITY.key / f"{OTHER}.json").exists()


def test_compare_in_words_in_json_and_in_markdown(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", [*sessions(10), *sessions(12, case=OTHER)])
    write(tmp_path / "head.jsonl", [*sessions(15, seed=1, artifact="b"), *sessions(12, seed=2, case=OTHER)])
    code, out = bench("compare", "base.jsonl", "head.jsonl")
    assert code == ExitCode.SLOWER
    assert "geometric mean 1.5" in out
    assert "texture is now faster than opencl" in out

    code, out = bench("compare", "base.jsonl", "head.jsonl", "--json")
    told = json.loads(out)
    assert told["cases"][0]["verdict"] == "slower"
    assert told["ranking_flips"][0]["now_faster"] == "texture"
    assert {mean["path"] for mean in told["geometric_means"]} == {"opencl", "texture"}

    code, out = bench("compare", "base.jsonl", "head.jsonl", "--markdown")
    first, _, shows, _, table, *_ = out.splitlines()
    assert first == "**1 slower** in 2 cases (1 same)"
    assert shows == f"* **slower** `{CASE}`: `adreno-bench run --case {CASE}`"
    assert table.startswith("| case")
    assert "\n* texture on " in out


def test_baselines_are_a_side_as_well_as_records(tmp_path: Path) -> None:
    bench("bless", "--records", str(write(tmp_path / "good.jsonl", sessions(10))))
    write(tmp_path / "head.jsonl", sessions(10.05, seed=5, artifact="b"))
    code, out = bench("compare", "baselines", "head.jsonl", "--relevant", "10")
    assert (code, " same " in out) == (ExitCode.GOOD, True), out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compare", "none.jsonl", "good.jsonl"], ExitCode.USAGE, "there is no "),
        (["compare", "empty.jsonl", "good.jsonl"], ExitCode.USAGE, "empty.jsonl has no records of these cases"),
        (["compare", "old.jsonl", "good.jsonl"], ExitCode.USAGE, "old.jsonl:1: not a record of schema 2 (schema"),
        (["compare", "good.jsonl", "good.jsonl", "--json", "--markdown"], ExitCode.USAGE, "exclude each other"),
        (["compare", "good.jsonl", "new.jsonl"], ExitCode.NOTHING_MEASURED, "nothing was compared: base ran on phone-"),
        (["compare", "edited", "good.jsonl"], ExitCode.USAGE, "was edited by hand since it was written"),
        (["gate", "--from", "good.jsonl", "--baselines", "edited"], ExitCode.USAGE, "was edited by hand since"),
        (["gate", "--from", "none.jsonl"], ExitCode.USAGE, "there is no none.jsonl"),
        (["gate", "--from", "empty.jsonl"], ExitCode.NOTHING_MEASURED, "nothing was compared"),
        (["gate", "--from", "good.jsonl", "--baselines", "basline"], ExitCode.USAGE, "there is no folder basline"),
        (["gate", "--relevant", "0"], ExitCode.USAGE, "--relevant"),
        (["bless", "--records", "none.jsonl"], ExitCode.USAGE, "there is no none.jsonl"),
        (["bless", "--records", "empty.jsonl"], ExitCode.USAGE, "nothing to bless in empty.jsonl"),
    ],
)
def test_bad_input_is_one_line_and_never_a_pass(
    tmp_path: Path, arguments: list[str], code: ExitCode, message: str
) -> None:
    good = write(tmp_path / "good.jsonl", sessions(10))
    write(tmp_path / "new.jsonl", sessions(10, identity=NEW_DRIVER))
    write(tmp_path / "empty.jsonl", [])
    (tmp_path / "old.jsonl").write_text(good.read_text().replace('"schema":2', '"schema":0'))
    edited = tmp_path / "edited" / IDENTITY.key / f"{CASE}.json"
    edited.parent.mkdir(parents=True)
    edited.write_text(blessed_and_edited())
    done, out = bench(*arguments)
    assert done == code
    assert message in out


def blessed_and_edited() -> str:

    blessing = blessing_of(sessions(10))
    assert blessing.baseline
    return blessing.baseline.text().replace('"tvm": "0.27', '"tvm": "0.28')


def test_records_of_several_hosts_calibrate_each_of_their_devices(tmp_path: Path) -> None:
    (tmp_path / "nights").mkdir()
    taken, moment = sessions(10, 8), "2026-01-{:02}T00:00:00"
    dated = [one.model_copy(update={"started_at": moment.format(day)}) for day, one in enumerate(taken, 1)]
    other = {"identity": NEW_DRIVER, "identity_key": NEW_DRIVER.key}
    write(tmp_path / "nights/a.jsonl", [*sessions(20, 4, artifact="b" * 24), *dated[:4]])
    write(tmp_path / "nights/b.jsonl", [*dated[4:], *(one.model_copy(update=other) for one in dated)])
    code, out = bench("calibrate", "--from", "nights", "--json")
    assert code == ExitCode.GOOD
    found = json.loads(out)
    assert [(one["case"], one["noise_profile"]["sessions"]) for one in found] == [(CASE, 8), (CASE, 8)]
    assert {one["identity"] for one in found} == {IDENTITY.key, NEW_DRIVER.key}
    for key in (IDENTITY.key, NEW_DRIVER.key):
        assert NoiseProfile.find(tmp_path / "baselines" / PROFILES, key, CASE)
    code, out = bench("calibrate", "--from", "nights")
    assert out.count(f"{CASE} on {IDENTITY.key}") == 2


def test_what_calibrates_records_runs_nothing_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "records.jsonl", [*sessions(10, 8), *sessions(10, 8, as_shipped=True)])
    code, out = bench("calibrate", "--from", "records.jsonl", "--json")
    assert (code, len(json.loads(out))) == (ExitCode.GOOD, 1)
    assert "--sessions has no effect with --from" in bench("calibrate", "--from", "records.jsonl", "--sessions", "8")[1]
    assert "no records of these cases" in bench("calibrate", "--from", "records.jsonl", "--case", "other-*")[1]
