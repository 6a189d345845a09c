"""Pictures as the inputs of a classifier: resized, cut and scaled as torchvision does for ImageNet.

Source: torchvision's `ImageFolder`, `Resize` of the shorter side (bilinear, on 8-bit pictures), `CenterCrop` and
`Normalize`. Classes are numbered in the order of their names, or by the names themselves where these are numbers. As
there, transparency and the rotation that a camera notes (EXIF) are ignored; only 16 bits of grey are scaled to 8, which
Pillow cuts off at 255.

Pictures come from anywhere: a process of its own with limits decodes them, of four formats only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_runner.failures import SetupMissing
from device_runner.files import what_else
from device_runner.store import Store, key_of, sha256_of
from harness.base.failures import ModelError
from harness.base.model import ImageFolder
from harness.base.tables import counted
from harness.compile.models.input_files import ANY_INPUT, LABELS
from harness.compile.models.limited_fork import run_limited

VERSION = 2
"""Changes with what is made of a picture."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
FORMATS = ("JPEG", "PNG", "WEBP", "BMP")
MOST_PIXELS = 64_000_000
"""What a picture may have, as it is and resized."""
LARGEST_BYTES = 1 << 30
"""What all inputs together may take."""
TIMEOUT_S = 900.0
MEMORY_BYTES = 8 << 30
NAMES_OF_A_MESSAGE = 3


@dataclass(frozen=True)
class LabelledPicture:
    """A file and its class."""

    file: Path
    label: int


@lru_cache(maxsize=16)
def labelled_file(data: ImageFolder, cache: Path) -> Path:
    """Return an `.npz` file of the pictures as inputs, made once for their content.

    Raises ModelError for a folder or pictures that cannot be used, SetupMissing without Pillow.
    """
    pictures = spread(find_pictures(data.folder), data.most)
    needed = len(pictures) * len(data.mean) * data.crop**2 * 4
    if needed > LARGEST_BYTES:
        most = LARGEST_BYTES // (needed // len(pictures))
        raise ModelError(f"{len(pictures)} pictures of {data.folder} take {needed} bytes", hint=f"set most = {most}")
    files = {str(p.file.relative_to(data.folder)): [_digest(p.file), p.label] for p in pictures}
    key = key_of({"version": VERSION, "options": data.model_dump(mode="json", exclude={"folder"}), "pictures": files})

    def make(scratch: Path) -> None:
        def decode() -> None:
            _write(scratch / "labelled.npz", data, pictures)

        run_limited(data.folder, decode, deadline_s=TIMEOUT_S, memory_bytes=MEMORY_BYTES)

    return Store(cache, "pictures").obtain(key, make, TIMEOUT_S) / "labelled.npz"


def find_pictures(folder: Path) -> list[LabelledPicture]:
    """Return the pictures of each class. Raises ModelError without classes, or for one without pictures."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder of pictures", hint="correct `labelled` of the model in the suite")
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not classes:
        raise ModelError(f"{folder} has no folders", hint="one for each class, with its pictures")
    numbered = all(path.name.isdecimal() for path in classes)
    pictures = []
    for number, path in enumerate(classes):
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and not file.is_dir())
        if not files:
            raise ModelError(f"{path} has no pictures", hint=f"they end with {', '.join(SUFFIXES)}")
        pictures += [LabelledPicture(file, int(path.name) if numbered else number) for file in files]
    return pictures


def spread(pictures: Sequence[LabelledPicture], most: int) -> list[LabelledPicture]:
    """Return so many pictures at most, evenly over the classes in their order."""
    count = min(most, len(pictures))
    return [pictures[index * len(pictures) // count] for index in range(count)]


def _digest(file: Path) -> str:
    """Return the hash of a picture's file. Raises ModelError for a link that leads nowhere, a FIFO, and others."""
    try:
        if other := what_else(file):  # a FIFO would block us
            raise ModelError(f"the picture {file} is {other}, not a file", hint="remove it")
        return sha256_of(file)
    except OSError as error:
        raise ModelError(f"the picture {file}: {error.strerror}", hint="remove or repair it") from error


def as_input(picture: Any, data: ImageFolder) -> NDArray[np.float32]:
    """Return a picture of Pillow as float32, channels first.

    Args:
        picture: Any size and colours.
        data: How it is resized, cut and scaled.
    """
    from PIL import Image

    if picture.mode.startswith("I;16"):
        picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    coloured = picture.convert("L" if len(data.mean) == 1 else "RGB")
    size = _resized(picture.size, data.resize)
    left, top = (round((side - data.crop) / 2) for side in size)
    resized = coloured.resize(size, Image.Resampling.BILINEAR)
    cut = resized.crop((left, top, left + data.crop, top + data.crop))
    pixels = np.asarray(cut, np.float32).reshape(data.crop, data.crop, len(data.mean)) / 255
    scaled = (pixels - np.asarray(data.mean, np.float32)) / np.asarray(data.deviation, np.float32)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1), dtype=np.float32)


def _resized(size: tuple[int, int], shorter: int) -> tuple[int, int]:
    """Return width and height of a picture whose shorter side gets this length."""
    width, height = size
    return shorter * width // min(size), shorter * height // min(size)


def _write(out: Path, data: ImageFolder, pictures: Sequence[LabelledPicture]) -> None:
    """Write inputs and labels. Raises ModelError with a line for the first pictures that are broken."""
    try:
        from PIL import Image
    except ImportError:
        raise SetupMissing("Pillow is not installed", hint="pip install 'adreno-bench[images]'") from None
    Image.MAX_IMAGE_PIXELS = None  # ours is lower; this process decodes and ends
    warnings.simplefilter("ignore")  # of transparency
    inputs = np.empty((len(pictures), len(data.mean), data.crop, data.crop), np.float32)
    broken = []
    for row, picture in zip(inputs, pictures, strict=True):
        try:
            with Image.open(picture.file, formats=FORMATS) as opened:
                if max(map(math.prod, (opened.size, _resized(opened.size, data.resize)))) > MOST_PIXELS:
                    raise ValueError(f"{opened.width} x {opened.height} pixels are too many")
                row[:] = as_input(opened, data)
        except Exception as error:  # decoders of several formats, each with errors of its own
            why = str(error).removesuffix(repr(str(picture.file))).strip() or type(error).__name__
            broken.append(f"{picture.file.relative_to(data.folder)}: {why}")
    if broken:
        more = f"; and {len(broken) - NAMES_OF_A_MESSAGE} others" if len(broken) > NAMES_OF_A_MESSAGE else ""
        named = "; ".join(broken[:NAMES_OF_A_MESSAGE])
        hint = "remove or repair them"
        count = counted(len(broken), "picture")
        raise ModelError(f"{count} of {data.folder} cannot be used: {named}{more}", hint=hint)
    labels = np.asarray([picture.label for picture in pictures], np.int64)
    arrays: dict[str, Any] = {ANY_INPUT: inputs, LABELS: labels}
    np.savez(out, **arrays)
