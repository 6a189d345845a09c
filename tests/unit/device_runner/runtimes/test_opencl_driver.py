"""Which OpenCL driver and device are used."""

from importlib import metadata
from pathlib import Path

import pytest

from device_runner.runtimes import opencl
from device_runner.runtimes.opencl import DEVICE_VARIABLE, DRIVER_VARIABLE, chosen, packaged_driver

LIBRARY = Path("/packages/lib/libintelocl.so")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "packaged_driver", lambda: LIBRARY)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["Intel", "intel(r) opencl/amd epyc"])
def test_the_packaged_driver_is_used_when_its_device_is_asked_for(name: str) -> None:
    assert chosen({DEVICE_VARIABLE: name}) == {DEVICE_VARIABLE: name, DRIVER_VARIABLE: str(LIBRARY)}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {DEVICE_VARIABLE: "pthread"},
        {DRIVER_VARIABLE: "/mine"},
        {DEVICE_VARIABLE: "Intel", DRIVER_VARIABLE: "/mine"},
    ],
)
def test_otherwise_the_users_own_choice_stands(environment: dict[str, str]) -> None:
    assert chosen({**environment, "HOME": "/home"}) == environment


def test_without_the_package_only_the_device_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    assert packaged_driver() is None
    assert chosen({DEVICE_VARIABLE: "Intel"}) == {DEVICE_VARIABLE: "Intel"}
