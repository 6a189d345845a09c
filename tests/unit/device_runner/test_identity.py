"""Which series a device's results belong to: what its key is made of, and what leaves it as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from device_runner.device import Identity
from device_runner.rpc_device import LONGEST_NAME, chip_and_board
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import phone

PHONE = Identity("phone", "R58M12ABCDE", soc="SM8650", gpu="Adreno 750", driver="0762.10", rom="maker/x:14/1")
BOARD = Identity("phone", "0123456789", gpu="Adreno 643", driver="0762.10")


def test_a_key_that_was_written_before_more_was_asked_is_the_same() -> None:
    """Of the version before handsets, libraries and boards were known."""
    assert Identity("phone", "", gpu="Adreno740", driver="1").key == "phone-Adreno740-cc0c2706"
    assert Identity("virtual", "x", soc="virtual", gpu="PoCL", emulated=("gpu",)).key == "virtual-PoCL-6a709a4d"


def test_two_handsets_of_a_model_are_two_series_and_show_that_they_are_of_one_model() -> None:
    one, other = PHONE.key, replace(PHONE, serial="R58M99ZZZZZ").key
    assert one != other
    assert one.rpartition("-")[0] == other.rpartition("-")[0]


def test_neither_the_serial_nor_enough_of_its_hash_stands_in_the_key() -> None:
    assert PHONE.serial not in PHONE.key
    assert len(PHONE.handset) == 5


@pytest.mark.parametrize("kind", ["virtual", "local"])
def test_what_is_no_handset_is_one_series_whatever_it_is_called(kind: str) -> None:
    assert replace(PHONE, kind=kind).key == replace(PHONE, kind=kind, serial="another").key


@pytest.mark.parametrize(
    "other", [replace(PHONE, opencl_libraries="n"), replace(PHONE, clml_libraries="n"), replace(PHONE, vendor="n")]
)
def test_other_drivers_start_a_new_series(other: Identity) -> None:
    assert other.key != PHONE.key


def test_a_rebuilt_runtime_does_not_for_it_is_what_may_be_compared() -> None:
    assert replace(PHONE, runtime="0a1b2c").key == PHONE.key


def test_a_vendor_build_that_is_the_roms_own_tells_nothing_new() -> None:
    assert replace(PHONE, vendor=PHONE.rom).key == PHONE.key


def test_a_board_without_a_rom_is_told_by_its_chip_and_its_model() -> None:
    keys = {BOARD.key, replace(BOARD, chip="SC7280 1.0").key, replace(BOARD, board="RB3 Gen 2").key}
    assert len(keys) == 3
    assert replace(PHONE, chip="KALAMA Snapdragon 519 2.0", board="MTP").key == PHONE.key


@given(st.builds(Identity, kind=st.sampled_from(["phone", "virtual", "local"]), serial=st.text(), vendor=st.text()))
def test_an_identity_survives_being_written(identity: Identity) -> None:
    plain = TypeAdapter(Identity)
    again = plain.validate_json(plain.dump_json(identity))
    assert (again, again.key) == (identity, identity.key)


def asked(system: Path) -> dict[str, str]:
    return chip_and_board(LocalTransport(str(system)), str(system))


def test_chip_and_board_are_what_the_kernel_says(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    assert asked(tmp_path) == {"chip": "virtual none 0 1.0", "board": ""}
    model = tmp_path / "sys/firmware/devicetree/base/model"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"Qualcomm Technologies, Inc.\tRobotics RB5\0")
    assert asked(tmp_path)["board"] == "Qualcomm Technologies, Inc. Robotics RB5"


def test_a_kernel_that_tells_less_or_nonsense_is_taken_as_it_is(tmp_path: Path) -> None:
    assert asked(tmp_path) == {"chip": "", "board": ""}
    soc0 = tmp_path / "sys/devices/soc0"
    soc0.mkdir(parents=True)
    (soc0 / "machine").write_text("SC7280\n")
    (soc0 / "soc_id").write_bytes(b"\x1b[2J" + b"9" * 10_000)
    said = asked(tmp_path)["chip"]
    assert said.startswith("SC7280 [2J999")
    assert len(said) == LONGEST_NAME
