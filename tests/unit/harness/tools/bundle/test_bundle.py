"""Bundles: what is packed, and what of the results that come back is taken in."""

from __future__ import annotations

import io
import json
import random
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bundle_runner import END, device_line, line_of, right_turn, seen_line, write_lines
from fake_device import ANSWER, Things, a_plan, things
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity
from device_runner.runtimes import probe
from harness.base.failures import CompileFailure, UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.tools.bundle import pack as packing
from harness.tools.bundle import runner
from harness.tools.bundle.archive import unpack
from harness.tools.bundle.manifest import LINES, MANIFEST, BundleTurn
from harness.tools.bundle.pack import KINDS, PackedBundle, pack
from harness.tools.bundle.results import BrokenLine, BundleResults, lines_of, read_results
from harness.tools.bundle.verdict import verdicts_of
from harness.tools.shared.kernels import peaks

Says = Callable[[BundleTurn], Mapping[str, Any]]
"""What the runner says of a turn."""

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
    """A folder in which bundles are packed; what runs them is made up."""

    root: Path

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
    ) -> PackedBundle:
        asked = Asked(self.root / "cache", models, artifact)
        return pack(asked, KIND, lambda plans: self.built(plans, change), self.root / name, **options)  # type: ignore[arg-type]

    def run(
        self,
        packed: PackedBundle,
        results: str = "results",
        says: Says = lambda _: right_turn(ANSWER),
        turns: int | None = None,
    ) -> Path:
        """Run so many turns, or all."""
        built = {(name, one.case): one for name, build in packed.manifest.builds.items() for one in build.cases}
        asked = [(turn, {} if built[turn].artifact.failure else says(turn)) for turn in packed.manifest.turns[:turns]]
        seen = [seen_line(turn, said, second % 60) for second, (turn, said) in enumerate(asked)]
        lines = [device_line(), *seen, *(END if turns is None else [])]
        return write_lines(self.root / results, packed.manifest.text(), lines)

    def read(self, results: Path, **options: Any) -> BundleResults:
        return read_results(results, self.root / "cache", **options)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """No library is compiled, and none is loaded."""
    for name in ("libtvm_ffi.so", "adreno.probe.so", "peaks.probe.so", "runner"):
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setattr(packing, "runtime_of", lambda kind, cache: packing.Runtime([tmp_path / "libtvm_ffi.so"]))
    monkeypatch.setattr(probe, "library", lambda cache, abi: tmp_path / "adreno.probe.so")
    monkeypatch.setattr(peaks, "module", lambda cache, abi: tmp_path / "peaks.probe.so")
    monkeypatch.setattr(runner, "program", lambda cache, abi: tmp_path / "runner")
    monkeypatch.setattr(packing, "made_here", lambda: {"tvm": "0.27.0", "ffi": "0.1.14", "harness": "0.1.0"})
    return Rig(tmp_path)


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
    assert len(rig.read(rig.run(packed), bundle=packed.file).records) == 1


def test_a_case_that_was_not_built_has_its_outcome_all_the_same(rig: Rig) -> None:
    def broken(made: Things) -> None:
        made["c-tiny"] = CompileFailure("no schedule", hint="wait", evidence="log")

    packed = rig.pack(change=broken, sessions=3)
    assert [one.case for one in packed.failures] == ["tiny-opencl-float32-untuned"]
    (record,) = rig.read(rig.run(packed)).records
    assert (record.outcome, record.message, record.hint) == (Outcome.COMPILE_ERROR, "no schedule", "wait")


@pytest.mark.parametrize(
    ("said", "outcome", "message"),
    [
        (
            {"doing": "running", "signal": 9, "code": 0},
            Outcome.DEVICE_CRASH,
            "the process died of SIGKILL while running",
        ),
        ({"doing": "running", "hung": True}, Outcome.HANG, "running did not end within 600 s"),
        ({"doing": "running", "error": "RuntimeError: no"}, Outcome.RUNTIME_ERROR, "running failed"),
        (
            {"doing": "loading", "broken": "no such file: x"},
            Outcome.INFRA_ERROR,
            "gave up while loading: no such file: x",
        ),
        (right_turn(2 * ANSWER, near=False), Outcome.WRONG_RESULT, "output 0 is off by"),
    ],
)
def test_what_goes_wrong_in_a_turn_is_the_outcome_of_no_other(
    rig: Rig, said: dict[str, Any], outcome: Outcome, message: str
) -> None:
    results = rig.run(
        rig.pack(models=("tiny", "other")),
        says=lambda turn: said if turn.case.startswith("tiny") else right_turn(ANSWER),
    )
    first, second = rig.read(results).records
    assert first.outcome is outcome
    assert message in first.message
    assert not first.wall_ms
    assert second.outcome is Outcome.OK


def test_a_run_that_was_cut_short_is_taken_as_far_as_it_came(rig: Rig) -> None:
    results = rig.run(rig.pack(models=("tiny", "other")), turns=1)
    with (results / LINES).open("ab") as file:
        file.write(b"0123 half a line")
    with pytest.raises(UsageError, match="1 of 2 turns, first other"):
        rig.read(results)
    cut = rig.read(results, partial=True)
    assert [turn.case for turn in cut.missing] == ["other-opencl-float32-untuned"]
    assert len(cut.records) == 1


def test_a_run_that_went_on_elsewhere_is_refused(rig: Rig) -> None:
    packed = rig.pack(models=("tiny", "other"))
    first, second = (seen_line(turn, right_turn(ANSWER)) for turn in packed.manifest.turns)
    lines = [device_line(), first, device_line(node="another"), second, *END]
    assert rig.read(write_lines(rig.root / "r", packed.manifest.text(), lines)).whole  # a host by another name
    lines[2] = device_line(machine="aarch64")
    with pytest.raises(UsageError, match="resumed on another device"):
        rig.read(write_lines(rig.root / "r", packed.manifest.text(), lines))


@pytest.mark.parametrize("path", ["../../etc/x.so", "/etc/x.so", "a/../../x.so", "a\\..\\x.so"])
def test_a_manifest_that_leads_out_of_the_bundle_is_refused(rig: Rig, path: str) -> None:
    packed = rig.pack("folder")
    told = json.loads((packed.file / MANIFEST).read_text())
    told["builds"]["head"]["libraries"] = [path]
    (packed.file / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(UsageError, match="leaves the bundle"):
        rig.pack("both", against=packed.file)


@pytest.mark.parametrize("field", ["answers", "witness", "range"])
def test_a_manifest_whose_answers_are_elsewhere_is_refused(rig: Rig, field: str) -> None:
    manifest = json.loads((rig.pack("folder").file / MANIFEST).read_text())
    manifest["builds"]["head"]["cases"][0][field] = "../../answers"
    (rig.root / "folder" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="cannot be part of a file name"):
        rig.pack("both", against=rig.root / "folder")


def test_a_bundle_of_another_version_is_no_base(rig: Rig) -> None:
    packed = rig.pack("folder")
    manifest = packed.file / MANIFEST
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(UsageError, match="version 2, and this adreno-bench reads version 1"):
        rig.pack("both", against=packed.file)


def test_what_is_no_bundle_is_refused_by_its_name(rig: Rig) -> None:
    packed = rig.pack("folder")
    results = rig.run(packed)
    (packed.file / MANIFEST).unlink()
    told = f"^{re.escape(str(packed.file))} is not a bundle: "
    with pytest.raises(UsageError, match=told):
        rig.pack("both", against=packed.file)
    with pytest.raises(UsageError, match=told):
        rig.read(results, bundle=packed.file)


def test_results_in_place_of_the_bundle_are_no_bundle(rig: Rig) -> None:
    results = rig.run(rig.pack())
    archived = archive(rig.root / "results.tar", {f"results/{f.name}": f.read_bytes() for f in results.glob("*.json*")})
    for place in (results, archived):
        with pytest.raises(UsageError, match=f"^{re.escape(str(place))} is not a bundle: it holds results: name what"):
            rig.read(results, bundle=place)
        with pytest.raises(UsageError, match=f"^{re.escape(str(place))} is not a bundle: it holds results: name what"):
            rig.pack("both", against=place)


def test_a_truncated_archive_is_refused(rig: Rig) -> None:
    packed = rig.pack()
    packed.file.write_bytes(packed.file.read_bytes()[:-200])
    with pytest.raises(UsageError, match="cannot be read"):
        unpack(packed.file, rig.root / "there")


@pytest.mark.parametrize("name", ["../x", "/x", "bundle/../../x"])
def test_nothing_is_unpacked_outside_of_the_folder(rig: Rig, name: str) -> None:
    file = archive(rig.root / "evil.tar", {name: b"x"})
    with pytest.raises(UsageError, match="leaves the archive"):
        unpack(file, rig.root / "there" / "deep")
    assert not (rig.root / "x").exists()
    assert not (rig.root / "there" / "x").exists()


def a_byte_changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"wall_ms": [2.0', b'"wall_ms": [1.0'), *lines[2:]]


def one_missing(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def one_twice(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines]


def in_another_order(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


@pytest.mark.parametrize("change", [a_byte_changed, one_missing, one_twice, in_another_order])
def test_results_that_were_changed_are_refused(rig: Rig, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file = rig.run(rig.pack(models=("tiny", "other"))) / LINES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines)))
    with pytest.raises(UsageError, match="does not follow from"):
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


def test_answers_that_were_changed_here_judge_nothing(rig: Rig) -> None:
    packed = rig.pack("folder")
    answers = next(packed.file.glob("answers/*/outputs.npz"))
    answers.write_bytes(answers.read_bytes()[:-1] + b"x")
    with pytest.raises(UsageError, match=r"outputs\.npz changed since it was packed"):
        rig.read(rig.run(packed), bundle=packed.file)


@pytest.mark.parametrize(
    "said",
    [
        right_turn(ANSWER, wall_ms=["fast"]),
        right_turn(ANSWER, wall_ms=[-1.0]),
        right_turn(ANSWER, outputs=[{"dtype": [2, 32], "shape": [9, 9], "hex": "00"}]),
    ],
)
def test_a_turn_that_makes_no_sense_is_refused(rig: Rig, said: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the results are no"):
        rig.read(rig.run(rig.pack(), says=lambda _: said))


def test_turns_in_another_order_are_refused(rig: Rig) -> None:
    packed = rig.pack(models=("tiny", "other"))
    turns = [seen_line(turn, right_turn(ANSWER)) for turn in reversed(packed.manifest.turns)]
    with pytest.raises(UsageError, match="turn 1 is of other"):
        rig.read(write_lines(rig.root / "r", packed.manifest.text(), [device_line(), *turns, *END]))


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([2.0] * 9 + [1e-300], "wall_ms has 1e-300 ms"),
        ([2.0] * 9 + [1e300], r"wall_ms has 1e\+300 ms"),
        ([2.0] * 100_001, "wall_ms has 100001 samples"),
        ([10**400], "int too large to convert to float"),
    ],
)
def test_times_that_no_run_measures_are_refused(rig: Rig, times: list[float], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rig.read(rig.run(rig.pack(), says=lambda _: right_turn(ANSWER, wall_ms=times)))


@pytest.mark.parametrize("claim", [{"machine": "aarch64"}, {"properties": "[ro.product.cpu.abi]: [arm64-v8a]"}])
def test_another_device_than_a_bundle_is_for_is_refused(rig: Rig, claim: dict[str, str]) -> None:
    packed = rig.pack()
    (turn,) = packed.manifest.turns
    lines = [device_line(**claim), seen_line(turn, right_turn(ANSWER)), *END]
    with pytest.raises(UsageError, match="does not run bundles for linux-x86_64"):
        rig.read(write_lines(rig.root / "r", packed.manifest.text(), lines))


def archive(file: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(file, "w") as made:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return file


def test_results_may_come_as_an_archive(rig: Rig) -> None:
    results = rig.run(rig.pack())
    content = {f"results/{name}": (results / name).read_bytes() for name in (MANIFEST, LINES)}
    assert rig.read(archive(rig.root / "r.tar", {**content, "results/work/head/x": b"ignored"})).whole


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../turns.jsonl", "leaves the archive"),
        ("/turns.jsonl", "leaves the archive"),
        ("results/evil.so", "which a bundle's runner never writes"),
        ("a/b/turns.jsonl", "which a bundle's runner never writes"),
        ("again/turns.jsonl", "twice"),
    ],
)
def test_an_archive_with_more_than_results_is_refused(rig: Rig, name: str, why: str) -> None:
    results = rig.run(rig.pack())
    content = {f"results/{one}": (results / one).read_bytes() for one in (MANIFEST, LINES)}
    with pytest.raises(UsageError, match=why):
        rig.read(archive(rig.root / "r.tar", {**content, name: b"x"}))


def test_another_folder_than_the_results_is_not_to_be_emptied(rig: Rig) -> None:
    """`ingest .` said of the suite file: remove it."""
    (rig.root / "here").mkdir()
    (rig.root / "here" / "adreno-bench.toml").touch()
    with pytest.raises(UsageError, match=r"runner writes: name the folder that run\.sh wrote"):
        rig.read(rig.root / "here")


def test_another_kind_of_archive_and_none(rig: Rig) -> None:
    (rig.root / "results.zip").write_bytes(b"PK\x03\x04" + bytes(1024))
    with pytest.raises(UsageError, match=r"cannot be read: .*: is it a \.tar, \.tar\.gz or \.tar\.zst"):
        rig.read(rig.root / "results.zip")
    results = rig.run(rig.pack())
    with pytest.raises(UsageError, match=r"there is no .*/none\.tar\.gz: correct its path"):
        rig.read(results, bundle=rig.root / "none.tar.gz")


def test_the_command_that_is_to_be_run_there_names_the_folder_in_the_archive(rig: Rig) -> None:
    from harness.tools.bundle.pack_command import _summary

    assert "run `sh 'of mine/run.sh' RESULTS`" in _summary(rig.pack("of mine.tar.gz"))


def two_builds(rig: Rig, head_ms: float, error: float = 0.0) -> BundleResults:
    """A bundle whose base takes 2 ms, run; each session takes another time, within half a percent of what is said."""
    base = rig.pack("base.tar.gz")
    both = rig.pack("both.tar.gz", artifact="c-other", against=base.file, sessions=8)
    chance = random.Random(1)

    def says(turn: BundleTurn) -> Mapping[str, Any]:
        head = turn.build == "head"
        each = (head_ms if head else 2.0) * chance.uniform(0.995, 1.005)
        right = not (head and error)
        answer = ANSWER if right else ANSWER + ANSWER.dtype.type(error)
        return right_turn(answer, [each * chance.uniform(0.995, 1.005) for _ in range(10)], near=right)

    return rig.read(rig.run(both, says=says))


def test_a_model_may_be_called_as_the_folder_of_plain_answers_is(rig: Rig) -> None:
    both = rig.pack("both.tar.gz", ["plain"], against=rig.pack("base.tar.gz", ["plain"]).file)
    libraries = {build: packed.cases[0].artifact.library for build, packed in both.manifest.builds.items()}
    assert libraries["base"] == "artifacts/base/plain-opencl-float32-untuned.so"
    assert {*libraries.values()} <= both.manifest.files.keys()


@pytest.mark.parametrize(("head_ms", "verdict"), [(2.0, Verdict.SAME), (2.3, Verdict.SLOWER), (1.7, Verdict.FASTER)])
def test_two_builds_run_in_turns_are_judged_as_a_gate_judges(rig: Rig, head_ms: float, verdict: Verdict) -> None:
    read = two_builds(rig, head_ms)
    (found,) = verdicts_of(read, Rules()).cases
    assert found.verdict is verdict
    arms = [turn.build for turn, _ in read.turns]
    assert all(sorted(arms[at : at + 4]) == ["base", "base", "head", "head"] for at in range(0, len(arms), 4))
    assert {record.artifact for record in read.records if record.compiled_with} == {"c-tiny"}


def test_a_wrong_head_is_wrong(rig: Rig) -> None:
    (found,) = verdicts_of(two_builds(rig, 2.0, error=1.0), Rules()).cases
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
    assert list(lines_of(io.BytesIO(lines), str(seed))) == told
    if lines:
        place = data.draw(st.integers(0, len(lines) - 2))
        other = bytes([lines[place] ^ data.draw(st.integers(1, 255))])
        with pytest.raises(BrokenLine):
            list(lines_of(io.BytesIO(lines[:place] + other + lines[place + 1 :]), str(seed)))
