"""One look at a phone: what the first one finds out, later ones do not ask again."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_runner.stability.sources import Sources
from device_runner.stand_ins.local import LocalTransport


def zone(system: Path, number: int, kind: str, celsius: int) -> Path:
    folder = system / f"sys/class/thermal/thermal_zone{number}"
    folder.mkdir(parents=True)
    (folder / "type").write_text(f"{kind}\n")
    (folder / "temp").write_text(f"{celsius}000\n")
    return folder


@pytest.mark.parametrize("gpu", [{}, {1: 41}, {1: 41, 2: 39}])
def test_only_the_zones_of_the_gpu_are_read_and_found_once(tmp_path: Path, gpu: dict[int, int]) -> None:
    cpu = zone(tmp_path, 0, "cpu-0-0", 55)
    for number, celsius in gpu.items():
        zone(tmp_path, number, f"gpuss-{number}", celsius)
    sources = Sources(LocalTransport(str(tmp_path)), str(tmp_path))
    first = sources.read()
    (cpu / "type").write_text("gpu-too-late\n")
    later = sources.read()
    expected = [f"{celsius}000" for celsius in gpu.values()]
    assert first["zones"].split() == later["zones"].split() == expected
    assert set(later) <= set(first)
