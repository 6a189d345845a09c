"""Which TVM works with which tvm-ffi."""

from datetime import datetime

import pytest

from device_runner.failures import SetupMissing
from harness.compile.compiler.releases import RELEASES, find_release, require_working_pair, versions


def test_the_installed_pair_works() -> None:
    require_working_pair(versions())


@pytest.mark.parametrize("tvm", RELEASES)
def test_a_pair_that_crashes_is_refused_with_the_one_to_install(tvm: str) -> None:
    with pytest.raises(SetupMissing, match=f"apache-tvm {tvm} does not work .*pip install apache-tvm-ffi==0.1.1"):
        require_working_pair({"tvm": tvm, "ffi": "0.1.15.post2"})


def test_every_release_is_listed_by_its_name_in_the_order_of_its_date() -> None:
    assert [release.tvm for release in RELEASES.values()] == list(RELEASES)
    dates = [datetime.fromisoformat(release.released_at) for release in RELEASES.values()]
    assert dates == sorted(dates)


def test_a_release_that_nobody_tried_is_left_to_try() -> None:
    require_working_pair({"tvm": "0.99", "ffi": "0.1.15"})


@pytest.mark.parametrize(
    ("word", "name"),
    [("0.27.0.post1", "0.27.0.post1"), ("0.27", "0.27.0.post1"), ("v0.26.0", "0.26.0"), ("0.1", None), ("main", None)],
)
def test_a_release_is_found_whole_or_by_its_first_numbers(word: str, name: str | None) -> None:
    assert find_release(word) == name
