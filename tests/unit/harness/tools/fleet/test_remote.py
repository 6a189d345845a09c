"""Which devices of other hosts a person means."""

from __future__ import annotations

import pytest

from device_runner.device import Identity
from device_runner.registry import UnknownDevice
from harness.tools.fleet.offer import Offer
from harness.tools.fleet.remote import select_offers, tracker_key


def test_the_name_of_a_worker_holds_the_key() -> None:
    assert tracker_key("adreno-bench/phone-Adreno #1-abc #12") == "adreno-bench/phone-Adreno #1-abc"


def test_offers_of_other_hosts_are_chosen_by_the_same_labels() -> None:
    def offer(name: str, soc: str, used_by: str = "") -> Offer:
        return Offer(name, "lab", Identity("phone", name, soc=soc), used_by)

    offered = [offer("A", "SM8650"), offer("B", "SM8550"), offer("C", "SM8650", "10.0.0.9")]
    said: list[str] = []
    assert [one.name for one in select_offers(["all"], offered, said.append)] == ["A@lab", "B@lab"]
    assert [one.name for one in select_offers(["soc=SM8650", "B@lab"], offered)] == ["A@lab", "B@lab"]
    assert said == ["C@lab is left out: it is busy, used by 10.0.0.9"]
    with pytest.raises(UnknownDevice, match="no free device at the tracker matches 'C@lab'") as caught:
        select_offers(["C@lab"], offered)
    assert caught.value.hint == "there are: A@lab (SM8650), B@lab (SM8550), C@lab (busy)"
    with pytest.raises(UnknownDevice) as caught:
        select_offers(["all"], [])
    assert caught.value.hint == "there are: none"
