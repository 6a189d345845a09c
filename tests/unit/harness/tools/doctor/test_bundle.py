"""Reports for a bug name nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tools.doctor.bundle import HARMLESS, redacted


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("phone R5CT30ABCDE is ready", "phone <removed> is ready"),
        ("adb-r5ct30abcde-x._adb-tls-connect._tcp", "adb-<removed>-x._adb-tls-connect._tcp"),
        ("mail jane.doe+x@example.co.uk.", "mail <account>."),
        ("wlan0 02:00:5e:10:00:0a up", "wlan0 <mac> up"),
        ("at 192.168.1.7:5555, by 127.0.0.1:5037", "at <address>:5555, by 127.0.0.1:5037"),
        ("IMEI 490154203237518", "IMEI <imei>"),
        ("800000000 600000000 GPU 36.5", "800000000 600000000 GPU 36.5"),
    ],
)
def test_whatever_names_somebody_is_cut_out(text: str, left: str) -> None:
    assert redacted(text, ["R5CT30ABCDE"]) == left


@given(st.text(), st.lists(st.text(alphabet="abcXYZ0189$.*(", min_size=4)))
def test_no_secret_is_left(text: str, secrets: list[str]) -> None:
    left = redacted(text.join(["", *secrets, ""]), secrets)
    for secret in secrets:
        assert secret.lower() not in left.lower().replace("<removed>", "\0")


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("ro.product.model", True),
        ("ro.soc.model", True),
        ("ro.build.version.sdk", True),
        ("ro.serialno", False),
        ("ro.boot.serialno", False),
        ("persist.sys.timezone", False),
        ("gsm.operator.alpha", False),
        ("ro.product.model.secret@x", False),
    ],
)
def test_properties_are_kept_by_a_list_of_harmless_ones(name: str, harmless: bool) -> None:
    assert bool(HARMLESS.fullmatch(name)) == harmless
