"""What `--device` may say, and which devices it then means."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner import selection
from device_runner.device import Identity
from device_runner.failures import DeviceLost
from device_runner.lease import lease
from device_runner.registry import UnknownDevice, is_built_in, list_devices
from device_runner.selection import (
    AmbiguousDevice,
    matches,
    parse_labels,
    recall_identity,
    remember_identity,
    select_one,
)
from device_runner.transport import adb_server
from device_runner.transport.adb_server import AdbEntry
from harness.tools.correctness.fixtures import expand

ODD = "adb-0A1B=2c, ' d._adb-tls-connect._tcp"
SOCS = {"A": "SM8650", "B": "SM8650", "C": "SM8550", ODD: "SM8550"}


@pytest.fixture
def phones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four phones that were opened before, two that cannot be, and the built-in devices, which were not."""
    entries = [AdbEntry(serial, "device", {"model": f"M_{soc}"}) for serial, soc in SOCS.items()]
    entries += [AdbEntry("D", "offline"), AdbEntry("E", "unauthorized")]
    monkeypatch.setattr(adb_server, "known_devices", lambda: entries)
    for serial, soc in SOCS.items():
        remember_identity(serial, Identity("phone", serial, soc=soc, gpu="Adreno (TM) 750"), tmp_path)
    for name in ("virtual", "local"):
        remember_identity(name, Identity(name, name, soc="this host"), tmp_path)


def chosen(folder: Path, *wanted: str) -> list[str]:
    return selection.select(wanted, folder)


@pytest.mark.usefixtures("phones")
@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["all"], ["A", "B", "C", ODD]),
        (["virtual"], ["virtual"]),
        (["C", "A", "C"], ["C", "A"]),
        (["soc=SM8650"], ["A", "B"]),
        (["soc=sm8*,name=A"], ["A"]),
        (["gpu=*750*", "virtual"], ["A", "B", "C", ODD, "virtual"]),
        (["model=M_SM8550"], ["C", ODD]),
        (["kind=phone"], ["A", "B", "C", ODD]),
        (["kind=local"], ["local"]),
        ([ODD], [ODD]),
        (["virtual:3"], ["virtual-1", "virtual-2", "virtual-3"]),
        (["virtual-7"], ["virtual-7"]),
    ],
)
def test_names_labels_and_all_mean_devices(tmp_path: Path, wanted: list[str], names: list[str]) -> None:
    assert chosen(tmp_path, *wanted) == names


@pytest.mark.usefixtures("phones")
def test_all_and_a_number_of_phones_stand_for_their_names_and_any_other_text_for_itself(tmp_path: Path) -> None:
    assert expand("all", tmp_path) == ["A", "B", "C", ODD]
    assert expand("virtual:2", tmp_path) == ["virtual-1", "virtual-2"]
    assert expand("soc=SM8650", tmp_path) == ["soc=SM8650"]


@pytest.mark.usefixtures("phones")
@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("soc=SM9999", "no device that is ready matches 'soc=SM9999'", "A (soc=SM8650, gpu=Adreno (TM) 750)"),
        ("soc=SM9999", "no device", "D (offline)"),
        ("colour=blue", "there is no label 'colour'", "labels are name, kind, soc"),
        ("virtual:0", "there are no 0 virtual devices", "virtual:1 to virtual:64"),
        ("virtual:99", "there are no 99 virtual devices", "virtual:1 to virtual:64"),
    ],
)
def test_what_matches_nothing_is_met_with_what_there_is(tmp_path: Path, wanted: str, message: str, hint: str) -> None:
    with pytest.raises(UnknownDevice) as caught:
        chosen(tmp_path, wanted)
    assert caught.value.outcome == "usage"
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.usefixtures("phones")
def test_where_one_is_needed_two_are_named(tmp_path: Path) -> None:
    assert select_one("name=A", tmp_path) == "A"
    with pytest.raises(AmbiguousDevice, match="matches 2 devices where one is needed: A, B") as caught:
        select_one("soc=SM8650", tmp_path)
    assert caught.value.outcome == "usage"


@pytest.mark.usefixtures("phones")
def test_a_label_leaves_out_whoever_is_busy_or_not_there_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    with lease("A", tmp_path / "leases", timeout_s=0):
        assert selection.select(["all"], tmp_path, said.append) == ["B", "C", ODD]
    assert [line.partition(",")[0] for line in said] == [
        "A is left out: it is busy",
        "D is left out: it is offline",
        "E is left out: it is unauthorized",
    ]


def test_all_is_the_virtual_device_only_where_no_phone_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    attached: list[AdbEntry] = []
    monkeypatch.setattr(adb_server, "known_devices", lambda: attached)
    assert selection.select(["all"], tmp_path, said.append) == ["virtual"]
    assert said == ["no phone is attached: `all` means virtual"]
    attached.append(AdbEntry("A", "unauthorized"))
    with pytest.raises(UnknownDevice, match="no attached phone is ready: A is unauthorized"):
        selection.select(["all"], tmp_path)


def test_a_device_that_was_never_opened_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    @contextmanager
    def opening(name: str, cache: Path, *, timeout_s: float):  # type: ignore[no-untyped-def]
        opened.append(name)
        if name == "B":
            raise DeviceLost("B is frozen")

        class Opened:
            identity = Identity("phone", name, soc="SM8650")

        yield Opened()

    entries = [AdbEntry(name, "device") for name in "AB"]
    monkeypatch.setattr(adb_server, "known_devices", lambda: entries)
    monkeypatch.setattr(selection, "open_device", opening)
    said: list[str] = []
    for _ in range(2):
        assert selection.select(["kind=phone,soc=SM8650"], tmp_path, said.append) == ["A"]
    assert opened == ["A", "B", "B"]
    assert "B is left out: B is frozen" in said


def test_a_damaged_note_of_an_identity_counts_for_nothing(tmp_path: Path) -> None:
    remember_identity("A", Identity("phone", "A", soc="X"), tmp_path)
    (note,) = (tmp_path / "identities").iterdir()
    for text in ("", "{", '{"kind": 3}', "[]"):
        note.write_text(text)
        assert recall_identity("A", tmp_path) is None


@pytest.mark.usefixtures("phones")
def test_numbered_virtual_phones_are_listed_while_somebody_uses_them(tmp_path: Path) -> None:
    with lease("virtual-2", tmp_path / "leases", timeout_s=0), lease("virtual-10", tmp_path / "leases", timeout_s=0):
        names = [entry.name for entry in list_devices(tmp_path)]
    assert names[-2:] == ["virtual-2", "virtual-10"]
    assert "virtual-2" not in [entry.name for entry in list_devices(tmp_path)]


@pytest.mark.parametrize("name", ["virtual-0", "virtual-01", "virtual-65", "virtual-", "virtual-1 ", "Virtual"])
def test_there_are_sixty_four_numbered_ones(name: str) -> None:
    assert not is_built_in(name)
    assert is_built_in("virtual-64")


@given(st.dictionaries(st.sampled_from(selection.LABELS), st.text("abc123 .()-", min_size=1).map(str.strip)))
def test_a_device_matches_its_own_labels(labels: dict[str, str]) -> None:
    text = ",".join(f"{label}={value}" for label, value in labels.items())
    assert matches(labels, parse_labels(text) or {})


@given(st.text())
def test_any_text_is_labels_or_a_name_or_refused(text: str) -> None:
    try:
        labels = parse_labels(text)
    except UnknownDevice:
        return
    assert labels is None or set(labels) <= set(selection.LABELS)


@pytest.mark.usefixtures("phones")
@pytest.mark.parametrize("wanted", [["virtual", "local"], ["virtual", "virtual:2"], ["soc=this host"]])
def test_what_computes_on_the_same_cores_is_not_measured_together(tmp_path: Path, wanted: list[str]) -> None:
    with pytest.raises(AmbiguousDevice, match="compute on the same cores of this host"):
        selection.select(wanted, tmp_path)
