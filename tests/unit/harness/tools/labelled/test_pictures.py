"""A folder of pictures as labelled data: which classes, which pixels, and what is refused in one line."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from device_runner.failures import SetupMissing
from harness.base.failures import ModelError, UsageError
from harness.base.model import ImageFolder, OnnxModel, anchored
from harness.base.suite import load_suite
from harness.compile.models.spec import InputSpec
from harness.tools.labelled.data import load_labelled
from harness.tools.labelled.pictures import as_input, find_pictures, labelled_file, spread

Image = pytest.importorskip("PIL.Image")
SPECS = [InputSpec("whatever", (1, 3, 8, 8), "float32")]


def picture(file: Path, colour: tuple[int, int, int], size: tuple[int, int] = (20, 10)) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(file)
    return file


def folder_of(tmp_path: Path, **options: object) -> ImageFolder:
    for name, colour in (("cat", (255, 0, 0)), ("dog", (0, 51, 0))):
        for number in range(2):
            picture(tmp_path / "val" / name / f"{number}.png", colour)
    return ImageFolder.model_validate({"folder": tmp_path / "val", "resize": 8, "crop": 8, **options})


def test_a_model_gets_each_picture_with_its_class_whatever_its_input_is_called(tmp_path: Path) -> None:
    data = folder_of(tmp_path, mean=(0.5, 0.5, 0.5), deviation=(0.5, 0.25, 0.5))
    loaded = load_labelled(labelled_file(data, tmp_path / "cache"), SPECS)
    assert loaded.labels.tolist() == [0, 0, 1, 1]
    assert loaded.inputs.shape == (4, 3, 8, 8)
    assert loaded.inputs[0, :, 0, 0].tolist() == [1, -2, -1]
    assert loaded.inputs[2, :, 4, 4].tolist() == pytest.approx([-1, (0.2 - 0.5) / 0.25, -1])


def test_the_shorter_side_is_resized_and_the_middle_is_cut_out() -> None:
    left_to_right = np.tile(np.arange(0, 200, 10, dtype=np.uint8), (10, 1))
    data = ImageFolder(folder=Path(), resize=10, crop=10, mean=(0.0,), deviation=(1 / 255,))
    cut = as_input(Image.fromarray(left_to_right), data)
    assert cut.shape == (1, 10, 10)
    np.testing.assert_allclose(cut[0, 0], np.arange(50, 150, 10), rtol=1e-6)


def test_names_that_are_numbers_are_the_classes(tmp_path: Path) -> None:
    for name in ("7", "10"):
        picture(tmp_path / name / "a.png", (0, 0, 0))
    assert {one.label for one in find_pictures(tmp_path)} == {7, 10}


def test_fewer_pictures_are_spread_over_the_classes(tmp_path: Path) -> None:
    data = folder_of(tmp_path, most=2)
    assert [one.label for one in spread(find_pictures(data.folder), data.most)] == [0, 1]


def test_pictures_are_decoded_once_for_their_content(tmp_path: Path) -> None:
    data, cache = folder_of(tmp_path), tmp_path / "cache"
    first = labelled_file(data, cache)
    labelled_file.cache_clear()
    assert labelled_file(data, cache) == first
    labelled_file.cache_clear()
    picture(data.folder / "cat" / "0.png", (9, 9, 9))
    assert labelled_file(data, cache) != first


def test_broken_pictures_are_one_line(tmp_path: Path) -> None:
    data = folder_of(tmp_path)
    whole = (data.folder / "cat/0.png").read_bytes()
    (data.folder / "cat/0.png").write_bytes(whole[: len(whole) // 2])
    (data.folder / "dog/1.png").write_bytes(b"GIF89a no picture")
    with pytest.raises(
        ModelError, match=r"2 pictures of .*val cannot be used: cat/0\.png: .*; dog/1\.png: cannot"
    ) as no:
        labelled_file(data, tmp_path / "cache")
    assert "\n" not in no.value.message


@pytest.mark.parametrize(
    ("mode", "colour", "pixel"),
    [
        ("CMYK", (0, 255, 255, 0), (255, 0, 0)),
        ("L", 51, (51, 51, 51)),
        ("1", 1, (255, 255, 255)),
        ("I;16", 32896, (128, 128, 128)),
        ("LA", (51, 0), (51, 51, 51)),
        ("RGBA", (0, 0, 255, 0), (0, 0, 255)),
    ],
)
def test_every_kind_of_pixel_becomes_three_colours(mode: str, colour: object, pixel: tuple[int, ...]) -> None:
    data = ImageFolder(folder=Path(), resize=8, crop=8, mean=(0.0,) * 3, deviation=(1 / 255,) * 3)
    made = as_input(Image.new(mode, (20, 20), colour), data)
    np.testing.assert_allclose(made[:, 4, 4], pixel, rtol=1e-6)


def test_a_palette_with_transparency_and_odd_names_work_without_a_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = folder_of(tmp_path)
    picture = Image.new("P", (20, 20), 1)
    picture.putpalette([0, 0, 0, 255, 0, 0] + [0] * 762)
    picture.save(data.folder / "cat" / "ein Bild \u00fc.png", transparency=bytes([0, 128]))
    (data.folder / "dog" / "elsewhere.png").symlink_to(data.folder / "cat" / "0.png")
    loaded = load_labelled(labelled_file(data, tmp_path / "cache"), SPECS)
    assert loaded.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (1, 60_000_000)])
def test_a_picture_of_too_many_pixels_is_not_decoded(tmp_path: Path, width: int, height: int) -> None:
    data = folder_of(tmp_path)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    ]
    (data.folder / "cat/0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    with pytest.raises(ModelError, match=rf"cat/0\.png: {width} x {height} pixels are too many"):
        labelled_file(data, tmp_path / "cache")


def test_links_that_lead_nowhere_and_what_is_no_file_are_one_line(tmp_path: Path) -> None:
    data = folder_of(tmp_path)
    (data.folder / "cat/link.png").symlink_to("nowhere.png")
    with pytest.raises(ModelError, match=r"cat/link\.png: No such file or directory"):
        labelled_file(data, tmp_path / "cache")
    (data.folder / "cat/link.png").unlink()
    os.mkfifo(data.folder / "cat/fifo.png")
    with pytest.raises(ModelError, match=r"cat/fifo\.png is a FIFO, not a file"):
        labelled_file(data, tmp_path / "cache")


def test_a_size_that_is_not_the_models_is_one_line(tmp_path: Path) -> None:
    file = labelled_file(folder_of(tmp_path), tmp_path / "cache")
    with pytest.raises(ModelError, match=r"becomes float32 \[3, 8, 8\], .* takes float32 \[3, 9, 9\]: set crop"):
        load_labelled(file, [InputSpec("x", (1, 3, 9, 9), "float32")])


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ([], "is not a folder of pictures"),
        (["val"], "has no folders"),
        (["val/cat"], "cat has no pictures: they end with"),
    ],
)
def test_a_folder_without_pictures_is_refused(tmp_path: Path, made: list[str], says: str) -> None:
    for name in made:
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(ModelError, match=says):
        find_pictures(tmp_path / "val")


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = folder_of(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SetupMissing, match=r"pip install 'adreno-bench\[images\]'"):
        labelled_file(data, tmp_path / "cache")


def test_the_suite_names_the_folder_relative_to_itself(tmp_path: Path) -> None:
    suite = tmp_path / "my.toml"
    table = '{ folder = "val", resize = 256, crop = 224, mean = [0.485, 0.456, 0.406], deviation = [0.2, 0.2, 0.2] }'
    suite.write_text(f'models = [{{ onnx = "net.onnx", labelled = {table} }}]\npaths = ["opencl"]\n')
    (model,) = load_suite(suite).models
    assert isinstance(model, OnnxModel)
    assert isinstance(model.labelled, ImageFolder)
    assert model.labelled.folder == tmp_path / "val"
    assert anchored(OnnxModel(onnx=Path("a.onnx"), labelled=Path("b.npz")), tmp_path).labelled == tmp_path / "b.npz"  # type: ignore[union-attr]


def test_a_crop_beyond_the_picture_is_refused_with_its_line(tmp_path: Path) -> None:
    suite = tmp_path / "my.toml"
    suite.write_text(
        'models = [{ onnx = "net.onnx", labelled = { folder = "val", resize = 8, crop = 9 } }]\npaths = ["opencl"]\n'
    )
    with pytest.raises(UsageError, match=r"my\.toml:1: .*crop 9 is larger than resize 8"):
        load_suite(suite)
