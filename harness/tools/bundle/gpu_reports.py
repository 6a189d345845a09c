"""A GPU of the host that ran a bundle, in what the runner printed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from device_runner.stability.host_gpu import (
    CARD_FILES,
    CARDS,
    VENDOR,
    GpuReading,
    ambiguous,
    card_reading,
    how_many_cards,
    nvidia_reading,
    vendor_of,
)

CARDS_SCRIPT = f"""
for card in {CARDS}/card[0-9]*; do
  for file in {" ".join(f'"$card"/{pattern}' for pattern in CARD_FILES)}; do
    value=; {{ read -r value <"$file"; }} 2>/dev/null && echo "${{file#{CARDS}/}} $value"
  done
done
"""
"""Prints the same of every card: the path of each file, and its first line."""


def card_report(printed: str, vendor: str) -> GpuReading | str:
    """Return the reading of the one card of a vendor in what `CARDS_SCRIPT` printed, or why there is none."""
    cards: dict[str, dict[str, str]] = {}
    for line in printed.splitlines():
        path, _, value = line.partition(" ")
        card, _, name = path.partition("/")
        cards.setdefault(card, {})[name] = value.strip()
    matches: Sequence[Mapping[str, str]] = [texts for texts in cards.values() if texts.get(VENDOR) == vendor]
    return card_reading(matches[0]) if len(matches) == 1 else how_many_cards(len(matches))


def reading_in(texts: Mapping[str, str], gpu: str) -> GpuReading | str:
    """Return the reading in what a bundle's look printed, or why there is none."""
    if "NVIDIA" in gpu:
        return nvidia_report(texts.get("gpus", ""), gpu)
    vendor = vendor_of(gpu)
    return card_report(texts.get("cards", ""), vendor) if vendor else ""


def nvidia_report(printed: str, gpu: str) -> GpuReading | str:
    """Return the reading of a GPU in what the runner of bundles printed, or why there is none."""
    blocks = [block.splitlines() for block in f"\n{printed}".split("\ngpu ")[1:]]
    matches = [lines[1:] for lines in blocks if lines[0].strip() == gpu]
    if len(matches) != 1:
        return ambiguous(gpu, len(matches))
    pairs = (line.split() for line in matches[0])
    return nvidia_reading({name: int(value) for name, value in pairs})
