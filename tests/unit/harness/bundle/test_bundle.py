"""Bundles: what is packed, what is run on a device of plain Python, and what of its results is taken in."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, FakeProgram, FakeSession, Things, a_plan, things
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity, Loadable, Toggles
from device_runner.failures import DeviceCrash, Hang, SetupMissing
from device_runner.runtimes import probe
from harness.bundle import pack as packing
from harness.bundle import target
from harness.bundle.archive import unpack
from harness.bundle.chain import TURNS, Broken, line_of, lines_of
from harness.bundle.manifest import MANIFEST, id_of
from harness.bundle.pack import KINDS, Packed, pack
from harness.bundle.results import Results, read_results
from harness.bundle.target import run_bundle
from harness.bundle.verdict import verdicts_of
from harness.cases.plan import Plan
from harness.cases.request import WORKED_AROUND, QuirkPolicy
from harness.failures import CompileFailure, UsageError
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome

KIND = KINDS["linux-x86_64"]


@dataclass(frozen=True)
class Asked:
    """What `pack` needs of a request."""

    cache: Path
    models: Sequence[str] = ("tiny",)
    artifact: str = ""
    """Its key, if it is another one than usual."""
    quirks: QuirkPolicy = WORKED_AROUND

    def plans(self, identity: Identity) -> list[Plan]:
        usual = [a_plan(name) for name in self.models]
        return [replace(one, compile=replace(one.compile, key=self.artifact or one.compile.key)) for one in usual]


@dataclass
class Rig:
    """A folder in which bundles are packed and run."""

    root: Path
    device: FakeDevice = field(default_factory=FakeDevice)

    def built(self, plans: Sequence[Plan], change: Callable[[Things], None]) -> Things:
        made: Things = {}
        for plan in plans:
            one = things(self.root / plan.case.model)
            (self.root / plan.case.model / "lib.so").write_bytes(f"code of {plan.compile.key}".encode())
            artifact = one["c-tiny"]
            made[plan.compile.key] = replace(artifact, key=plan.compile.key)  # type: ignore[type-var]
            made[plan.oracle.key] = one["o-tiny"]
        change(made)
        return made

    def pack(
        self,
        name: str = "bundle.tar.gz",
        models: Sequence[str] = ("tiny",),
        change: Callable[[Things], None] = lambda _: None,
        artifact: str = "",
        **options: Any,
    ) -> Packed:
        asked = Asked(self.root / "cache", models, artifact)
        return pack(asked, KIND, lambda plans: self.built(plans, change), self.root / name, **options)  # type: ignore[arg-type]

    def run(self, packed: Packed, results: str = "results") -> Path:
        folder = self.root / f"{packed.id[:8]}-there"
        if not folder.exists():
            unpack(packed.file, folder)
        run_bundle(folder, self.root / results, lambda _: None)
        return self.root / results

    def read(self, results: Path, **options: Any) -> Results:
        return read_results(results, self.root / "cache", **options)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """No library is compiled, none is loaded, and the device is made of plain Python."""
    made = Rig(tmp_path)
    made.device.name = target.DEVICE
    for name in ("libtvm_ffi.so", "adreno.probe.so"):
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setattr(packing, "_runtime", lambda kind, cache: packing.Runtime([tmp_path / "libtvm_ffi.so"]))
    monkeypatch.setattr(probe, "library", lambda cache, abi: tmp_path / "adreno.probe.so")
    monkeypatch.setattr(packing, "write_runner", lambda file: file.write_bytes(b"runner"))
    monkeypatch.setattr(packing, "made_here", lambda: {"tvm": "0.27.0", "ffi": "0.1.14", "harness": "0.1.0"})
    monkeypatch.setattr(target, "_device", lambda folder, build, root: made.device)
    return made


def test_what_is_run_there_becomes_records_here(rig: Rig) -> None:
    read = rig.read(rig.run(rig.pack(models=("tiny", "other"))))
    assert [record.case for record in read.records] == ["tiny-opencl-float32-untuned", "other-opencl-float32-untuned"]
    assert {record.outcome for record in read.records} == {Outcome.OK}
    assert {record.tvm for record in read.records} == {"0.27.0"}
    assert {record.run for record in read.records} == {read.records[0].run}
    assert read.records[0].wall_ms == [2.0] * 10
    assert read.whole


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.zst"])
def test_the_same_bundle_has_the_same_bytes_in_every_kind_of_archive(rig: Rig, ending: str) -> None:
    first, second = (rig.pack(f"{name}.{ending}") for name in ("bundle", "again"))
    assert first.id == second.id
    assert rig.pack(f"bundle.{ending}").file.read_bytes() == first.file.read_bytes()
    assert rig.read(rig.run(first)).bundle == first.id


def test_a_bundle_may_be_a_folder(rig: Rig) -> None:
    packed = rig.pack("folder")
    run_bundle(packed.file, rig.root / "results", lambda _: None)
    assert len(rig.read(rig.root / "results").records) == 1


def test_a_case_that_was_not_built_has_its_outcome_all_the_same(rig: Rig) -> None:
    def broken(made: Things) -> None:
        made["c-tiny"] = CompileFailure("no schedule", hint="wait", evidence="log")

    packed = rig.pack(change=broken, sessions=3)
    assert [one.case for one in packed.failures] == ["tiny-opencl-float32-untuned"]
    (record,) = rig.read(rig.run(packed)).records
    assert (record.outcome, record.message, record.hint) == (Outcome.COMPILE_ERROR, "no schedule", "wait")


@pytest.mark.parametrize("failure", [DeviceCrash("it died"), Hang("it never ends")])
def test_what_crashes_or_hangs_takes_its_turn_and_no_other(rig: Rig, failure: Exception) -> None:
    packed, ran = rig.pack(models=("tiny", "other")), rig.device.met

    def once(step: str) -> None:
        if step == "run":
            rig.device.met = ran  # type: ignore[method-assign]
            raise failure
        ran(step)

    rig.device.met = once  # type: ignore[method-assign]
    outcomes = [record.outcome for record in rig.read(rig.run(packed)).records]
    assert outcomes == [Outcome(failure.outcome), Outcome.OK]  # type: ignore[attr-defined]


def test_a_run_that_was_cut_short_keeps_what_finished_and_goes_on_from_there(rig: Rig) -> None:
    packed = rig.pack(models=("tiny", "other"))
    file = rig.run(packed) / TURNS
    first, second, *_ = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second[: len(second) // 2])
    with pytest.raises(UsageError, match="1 of 2 turns, first other"):
        rig.read(file.parent)
    cut = rig.read(file.parent, partial=True)
    assert [turn.case for turn in cut.missing] == ["other-opencl-float32-untuned"]
    whole = rig.read(rig.run(packed))
    assert whole.records[0] == cut.records[0]
    assert len(whole.records) == 2
    assert whole.records[1].run == cut.records[0].run


def test_a_full_disk_ends_the_run_and_keeps_what_finished(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, written = rig.pack(models=("tiny", "other")), []

    def sync(file: int) -> None:
        written.append(file)
        if len(written) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match="No space left"):
        rig.run(packed)
    assert len(rig.read(rig.root / "results", partial=True).records) == 1


def test_without_opencl_the_runner_says_so(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Without(FakeDevice):
        @property
        def identity(self) -> Identity:
            raise SetupMissing("OpenCL does not work on bundle: there is none", hint="does it have a driver?")

        @identity.setter
        def identity(self, _: Identity) -> None:
            """It has none."""

    packed = rig.pack("folder")
    monkeypatch.setattr(target, "_device", lambda folder, build, root: Without())
    with pytest.raises(SystemExit) as ended:
        target.main([str(rig.root / "results"), "--bundle", str(packed.file)])
    assert ended.value.code == target.RIG_FAILURE
    assert "OpenCL does not work on bundle: there is none: does it have a driver?" in capsys.readouterr().err


def test_a_bundle_that_was_changed_is_not_run(rig: Rig) -> None:
    packed = rig.pack("folder")
    library = packed.file / "artifacts/head/tiny-opencl-float32-untuned.so"
    library.write_bytes(b"other code")
    with pytest.raises(UsageError, match=r"tiny-opencl-float32-untuned\.so is not what was packed"):
        run_bundle(packed.file, rig.root / "results", lambda _: None)
    library.unlink()
    with pytest.raises(UsageError, match="is missing in the bundle"):
        run_bundle(packed.file, rig.root / "results", lambda _: None)


def test_a_bundle_of_another_version_is_not_run(rig: Rig) -> None:
    packed = rig.pack("folder")
    manifest = packed.file / MANIFEST
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(UsageError, match="version 2, and this adreno-bench knows version 1"):
        run_bundle(packed.file, rig.root / "results", lambda _: None)


@pytest.mark.parametrize("path", ["../../etc/x.so", "/etc/x.so", "a/../../x.so", "a\\..\\x.so"])
def test_a_manifest_that_leads_out_of_the_bundle_is_refused(rig: Rig, path: str) -> None:
    packed = rig.pack("folder")
    told = json.loads((packed.file / MANIFEST).read_text())
    told["builds"]["head"]["libraries"] = [path]
    (packed.file / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(UsageError, match="leads out of the bundle"):
        run_bundle(packed.file, rig.root / "results", lambda _: None)


def test_a_truncated_archive_is_refused(rig: Rig) -> None:
    packed = rig.pack()
    packed.file.write_bytes(packed.file.read_bytes()[:-200])
    with pytest.raises(UsageError, match="cannot be unpacked"):
        unpack(packed.file, rig.root / "there")


@pytest.mark.parametrize("name", ["../x", "/x", "bundle/../../x"])
def test_nothing_is_unpacked_outside_of_the_folder(rig: Rig, name: str) -> None:
    file = archive(rig.root / "evil.tar", {name: b"x"})
    with pytest.raises(UsageError, match="which no bundle has"):
        unpack(file, rig.root / "there" / "deep")
    assert not (rig.root / "x").exists()
    assert not (rig.root / "there" / "x").exists()


def a_byte_changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"wall_ms": [2.0', b'"wall_ms": [1.0'), *lines[1:]]


def one_missing(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def one_twice(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines]


def in_another_order(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


@pytest.mark.parametrize("change", [a_byte_changed, one_missing, one_twice, in_another_order])
def test_results_that_were_changed_are_refused(rig: Rig, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file = rig.run(rig.pack(models=("tiny", "other"))) / TURNS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines)))
    with pytest.raises(UsageError, match="is not what was written"):
        rig.read(file.parent, partial=True)


def test_results_of_a_bundle_that_nobody_packed_are_refused(rig: Rig) -> None:
    results = rig.run(rig.pack())
    with pytest.raises(UsageError, match="not packed here"):
        read_results(results, rig.root / "another cache")


def test_results_of_another_bundle_are_refused(rig: Rig) -> None:
    mine, other = rig.pack("mine.tar.gz"), rig.pack("other.tar.gz", models=("other",))
    results = rig.run(mine)
    with pytest.raises(UsageError, match=r"not of .*other"):
        rig.read(results, bundle=other.file)
    assert rig.read(results, bundle=mine.file).whole
    with pytest.raises(UsageError, match="is of another bundle"):
        rig.run(other, "results")


def forged(results: Path, **fields: Any) -> Path:
    """The results with other words in the first record, in lines that fit each other."""
    link, lines = id_of((results / MANIFEST).read_bytes()), []
    for number, line in enumerate((results / TURNS).read_bytes().splitlines()):
        told = json.loads(line[65:])
        if number == 0:
            told["record"].update(fields)
        new, link = line_of(told, link)
        lines.append(new)
    (results / TURNS).write_bytes(b"".join(lines))
    return results


@pytest.mark.parametrize(
    "fields",
    [{"artifact": "another"}, {"case": "a-opencl-float32-untuned"}, {"tvm": "0.1"}, {"quirks": []}, {"device": "x"}],
)
def test_a_record_of_something_else_is_foreign(rig: Rig, fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is not of what was packed"):
        rig.read(forged(rig.run(rig.pack()), **fields))


def test_what_is_no_record_is_refused(rig: Rig) -> None:
    with pytest.raises(UsageError, match="the results are not what the runner wrote"):
        rig.read(forged(rig.run(rig.pack()), wall_ms="fast"))


def archive(file: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(file, "w") as made:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return file


def test_results_may_come_as_an_archive(rig: Rig) -> None:
    results = rig.run(rig.pack())
    content = {f"results/{name}": (results / name).read_bytes() for name in (MANIFEST, TURNS)}
    assert rig.read(archive(rig.root / "r.tar", {**content, "results/work/head/x": b"ignored"})).whole


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../turns.jsonl", "leads out of it"),
        ("/turns.jsonl", "leads out of it"),
        ("results/evil.so", "which no bundle's runner writes"),
        ("a/b/turns.jsonl", "which no bundle's runner writes"),
        ("again/turns.jsonl", "twice"),
    ],
)
def test_an_archive_with_more_than_results_is_refused(rig: Rig, name: str, why: str) -> None:
    results = rig.run(rig.pack())
    content = {f"results/{one}": (results / one).read_bytes() for one in (MANIFEST, TURNS)}
    with pytest.raises(UsageError, match=why):
        rig.read(archive(rig.root / "r.tar", {**content, name: b"x"}))


@dataclass
class Paced(FakeDevice):
    """Every session takes another time, within half a percent of what is said."""

    ms: float = 2.0
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    @contextlib.contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[FakeSession]:
        with super().session(toggles, timeout_s=timeout_s) as session:
            each, program = self.ms * self.chance.uniform(0.995, 1.005), FakeProgram(self)

            def samples(repeat: int, *, timeout_s: float) -> list[float]:
                return [each * self.chance.uniform(0.995, 1.005) for _ in range(repeat)]

            def loaded(loadable: Loadable, *, timeout_s: float) -> FakeProgram:
                return program

            program.wall_ms = program.device_ms = samples  # type: ignore[method-assign]
            session.load = loaded  # type: ignore[method-assign]
            yield session


def two_builds(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, head_ms: float, sessions: int = 8, error: float = 0.0
) -> Results:
    """A bundle whose base takes 2 ms, run."""
    base = rig.pack("base.tar.gz")
    both = rig.pack("both.tar.gz", artifact="c-other", against=base.file, sessions=8)
    name = target.DEVICE
    devices = {"c-tiny": Paced(name=name), "c-other": Paced(name=name, ms=head_ms, error=error)}
    monkeypatch.setattr(target, "_device", lambda folder, build, root: devices[build.cases[0].artifact.key])
    return rig.read(rig.run(both))


@pytest.mark.parametrize(("head_ms", "verdict"), [(2.0, Verdict.SAME), (2.3, Verdict.SLOWER), (1.7, Verdict.FASTER)])
def test_two_builds_run_in_turns_are_judged_as_a_gate_judges(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, head_ms: float, verdict: Verdict
) -> None:
    read = two_builds(rig, monkeypatch, head_ms)
    (found,) = verdicts_of(read, Rules()).cases
    assert found.verdict is verdict
    arms = [turn.build for turn, _ in read.taken]
    assert all(sorted(arms[at : at + 4]) == ["base", "base", "head", "head"] for at in range(0, len(arms), 4))
    assert {record.artifact for record in read.records if record.compiled_with} == {"c-tiny"}


def test_a_wrong_head_is_wrong(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = verdicts_of(two_builds(rig, monkeypatch, 2.0, error=1.0), Rules()).cases
    assert found.verdict is Verdict.WRONG


def test_a_bundle_for_another_kind_of_device_is_no_base(rig: Rig) -> None:
    base = rig.pack("base")
    told = (base.file / MANIFEST).read_text().replace('"kind": "linux-x86_64"', '"kind": "linux-aarch64"')
    (base.file / MANIFEST).write_text(told)
    with pytest.raises(UsageError, match="is for linux-aarch64, not for linux-x86_64"):
        rig.pack("both", against=base.file)


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text()), max_size=5), st.integers(0, 10_000), st.data())
def test_no_byte_of_the_lines_can_be_another(told: list[dict[str, Any]], seed: int, data: st.DataObject) -> None:
    link, lines = str(seed), b""
    for one in told:
        line, link = line_of(one, link)
        lines += line
    assert [one for one, _ in lines_of(lines, str(seed))] == told
    if lines:
        place = data.draw(st.integers(0, len(lines) - 2))
        other = bytes([lines[place] ^ data.draw(st.integers(1, 255))])
        with pytest.raises(Broken):
            list(lines_of(lines[:place] + other + lines[place + 1 :], str(seed)))
