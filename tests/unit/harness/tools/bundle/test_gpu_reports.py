"""What a bundle's runner printed of GPUs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from device_runner.stability.host_gpu import AMD, CARDS, INTEL, GpuReading
from harness.tools.bundle.gpu_reports import CARDS_SCRIPT, card_report, reading_in


def a_card(cards: Path, vendor: str, files: dict[str, str]) -> Path:
    for name, content in {"device/vendor": vendor, **files}.items():
        file = cards / "card0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return cards


def test_what_a_bundles_look_printed_is_read_as_the_driver_itself(tmp_path: Path) -> None:
    cards = a_card(tmp_path, AMD, {"device/hwmon/hwmon3/freq1_input": "2400000000"})
    script = CARDS_SCRIPT.replace(str(CARDS), str(cards))
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout
    assert card_report(printed, AMD) == GpuReading(2400)
    assert isinstance(card_report(printed, INTEL), str)
    gpus = "gpu Other\nclock_mhz 1\ngpu NVIDIA H200\nclock_mhz 1980\npower_mw 121990\nreasons 4\nslowed_ns 0\n"
    assert reading_in({"gpus": gpus}, "NVIDIA H200") == GpuReading(1980, None, 121.99, (), 0.0, True)
    assert isinstance(reading_in({"gpus": ""}, "NVIDIA H200"), str)
    assert reading_in({}, "Adreno(TM) 740") == ""
