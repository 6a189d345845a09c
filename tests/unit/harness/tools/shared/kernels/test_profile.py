"""Profiles: launches added up by operator, named alike on every path, and compared in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_figures import figures_of, trace_of

from device_runner.device import Launch
from device_runner.runtimes.probe.answers import BadAnswer, launches_of
from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.compile.compiler.tir import OperatorWork
from harness.tools.profile.figures import plot_roofline
from harness.tools.profile.groups import groups_of, in_words
from harness.tools.profile.report import pages
from harness.tools.profile.roofline import points_of
from harness.tools.shared.kernels.operators import kind_of, label_of
from harness.tools.shared.kernels.peaks import FOLDER, rates_of, save_peaks, save_reported_peaks
from harness.tools.shared.kernels.profile import Operator, Peaks, Profile, Roof, operators_of

ON_BUFFERS = "fused_conv2d9_subtract4_divide4_multiply4_add11"
IN_IMAGES = "fused_conv2d_NCHWc_OIHWo8_opencl_subtract4_divide4_multiply4_add7_relu41"
PLAIN = OperatorWork(
    ON_BUFFERS, [[1, 512, 7, 7], [512, 512, 3, 3], [1, 512, 1, 1], [1, 512, 7, 7]], 9_646_080, 231_311_360, 256_901_120
)
BLOCKED = OperatorWork(
    IN_IMAGES,
    [[1, 128, 7, 7, 4], [128, 512, 3, 3, 4], [1, 128, 1, 1, 4], [1, 128, 7, 7, 4]],
    9_646_080,
    231_336_448,
    1_208_614_912,
)


def launch(kernel: str, start_ns: int, ms: float, threads: int = 64) -> Launch:
    return Launch(kernel, (threads, 1, 1), (16, 1, 1), start_ns, start_ns, start_ns, start_ns + int(ms * 1e6))


def a_profile(case: str, work: OperatorWork, ms: float, threads: int) -> Profile:
    one = launch(f"{work.function}_kernel", 0, ms, threads)
    operators = operators_of([[one]], [work])
    numbers = {"kernels_ms": ms, "span_ms": ms, "wall_ms": ms}
    peaks = Peaks(float32_gflop_s=61_900, copy_gb_s=4_090)
    return Profile(
        case=case, identity_key="k", gpu="G", tvm="0.27", artifact="a", operators=operators, peaks=peaks, **numbers
    )


def test_an_operator_is_the_median_over_inferences_of_all_its_kernels() -> None:
    def inference(ms: float) -> list[Launch]:
        names = ["fused_a_kernel", "fused_b_kernel", "fused_b_kernel_1", "fused_a_kernel"]
        return [launch(name, number * 10**7, ms) for number, name in enumerate(names)]

    found = operators_of(
        [inference(1.0), inference(3.0), inference(2.0)], [OperatorWork("fused_a", [[8], [8]], 64, 100, 130)]
    )
    assert [(one.function, one.kernels, one.launches, one.ms) for one in found] == [
        ("fused_a", ("fused_a_kernel",), 2, 4.0),
        ("fused_b", ("fused_b_kernel", "fused_b_kernel_1"), 2, 4.0),
    ]
    assert (found[0].flops, found[0].bytes, found[0].redone) == (200, 128, 1.3)
    assert (found[1].flops, found[1].bytes, found[1].redone) == (None, None, 1.0)


def test_an_operator_is_the_same_one_in_buffers_and_in_images() -> None:
    assert kind_of(ON_BUFFERS, PLAIN) == kind_of(IN_IMAGES, BLOCKED)
    assert label_of(ON_BUFFERS, PLAIN) == label_of(IN_IMAGES, BLOCKED) == "conv2d 512x512x3x3 to 512x7x7"
    assert kind_of(ON_BUFFERS, PLAIN) != kind_of("fused_add12_relu4", OperatorWork("", [[1, 512, 7, 7]] * 3, 1, 1, 1))


def test_a_function_that_the_compiler_told_nothing_of_has_its_name() -> None:
    assert label_of("fused_NT_matmul1_add3", None) == "NT_matmul_add"
    assert label_of("reshape", OperatorWork("reshape", [[1, 512, 1, 1], [1, 512]], 4096, 0, 0)) == "reshape to 512"


def test_the_words_name_the_operator_and_what_tells_its_kernels_apart() -> None:
    images, buffers = a_profile("images", BLOCKED, 5.57, 10_496), a_profile("buffers", PLAIN, 0.56, 6_422_528)
    first, second = in_words(images, buffers)
    assert first == "images: 5.57 ms in 1 kernel, 5.01 ms longer than buffers (0.56 ms in 1)."
    assert second == (
        "conv2d 512x512x3x3 to 512x7x7: 5.57 ms against 0.56, 100% of the difference; the slower kernel's loops go "
        "5.2 times over the operations that are needed (1.1 in the other); it has 10496 work-items for 25088 numbers, "
        "the other 6422528; 0.1% of the device's peak against 0.7%."
    )
    assert "shorter than images" in next(in_words(buffers, images))
    slow_host = images.model_copy(update={"peaks": Peaks(float32_gflop_s=50, copy_gb_s=4)})
    assert not any("peak" in line for line in in_words(slow_host, buffers)), "a share above 100% tells nothing"
    assert next(in_words(images, images)) == "images: 5.57 ms in 1 kernel, as long as images (5.57 ms in 1)."


def test_what_one_side_has_alone_is_said_to_be_alone() -> None:
    alone = a_profile("alone", OperatorWork("layout", [[4], [4]], 32, 0, 0), 1.0, 4)
    other = a_profile("other", PLAIN, 1.0, 4)
    assert [(group.mine_ms, group.other_ms) for group in groups_of(alone, other)] == [(1.0, 0.0), (0.0, 1.0)]
    assert any("there ms" in page for page in pages(alone, other))


def test_a_profile_comes_back_from_its_file(tmp_path: Path) -> None:
    file, profile = tmp_path / "profile.json", a_profile("case", PLAIN, 1.0, 4)
    file.write_text(profile.model_dump_json(by_alias=True))
    assert Profile.read(file) == profile
    assert "conv2d 512x512x3x3" in "\n".join(pages(profile, None))


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"schema": 99}'])
def test_what_is_no_profile_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.json").write_bytes(content)
    with pytest.raises(UsageError, match="is not a profile") as refused:
        Profile.read(tmp_path / "no.json")
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": []},
        {"ms": float("inf")},
        {"work": {**vars(PLAIN), "bytes": -1}},
        {"work": {**vars(PLAIN), "flops": 10**400}},
    ],
)
def test_an_operator_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    file, told = tmp_path / "profile.json", a_profile("case", PLAIN, 1.0, 4).model_dump(mode="json", by_alias=True)
    told["operators"][0] |= change
    file.write_text(json.dumps(told))
    with pytest.raises(UsageError, match="is not a profile"):
        Profile.read(file)


def test_a_roof_is_bandwidth_first_and_arithmetic_then() -> None:
    roof = Roof(gb_s=100, gflop_s=1000)
    assert [roof.at(intensity) for intensity in (1, 10, 50)] == [100, 1000, 1000]
    assert Roof().at(1) is None


@pytest.mark.parametrize(
    ("precision", "halves_gflop_s", "roof"),
    [
        (Precision.FLOAT32, 2000, Roof(100, 1000, "float32")),
        (Precision.FLOAT16, 2000, Roof(100, 2000, "float16")),
        (Precision.FLOAT16, None, Roof(100, 1000, "float32")),
        (Precision.FLOAT16_ACC32, 2000, Roof(100, 1000, "float32")),
    ],
)
def test_arithmetic_is_held_against_the_peak_of_its_number_format(
    precision: Precision, halves_gflop_s: float | None, roof: Roof
) -> None:
    peaks = Peaks(copy_gb_s=100, float32_gflop_s=1000, float16_gflop_s=halves_gflop_s)
    profile = a_profile("case", PLAIN, 1.0, 4).model_copy(update={"precision": precision, "peaks": peaks})
    assert profile.roof == roof


def test_a_point_lies_where_the_operator_needs_it_to(tmp_path: Path) -> None:
    images, buffers = a_profile("images", BLOCKED, 2.0, 10_496), a_profile("buffers", PLAIN, 0.5, 6_422_528)
    (point,) = points_of(images)
    assert point == ("conv2d 512x512x3x3 to 512x7x7", 231_336_448 / 9_646_080, 231_336_448 / 2e6, 1.0)
    page = tmp_path / "roof.html"
    plot_roofline([images, buffers], page)
    (figure,) = figures_of(page.read_text(encoding="utf-8"))
    drawn = trace_of(figure, "images")
    assert (drawn["x"], drawn["y"], drawn["text"]) == ([23.982], [115.67], ["conv2d 512x512x3x3 to 512x7x7"])
    assert trace_of(figure, "buffers")["marker"]["symbol"] != drawn["marker"]["symbol"]
    assert trace_of(figure, "at best: 4,090 GB/s, 61,900 GFLOP/s in float32")["y"][-1] == 61_900
    assert "src=" not in page.read_text(encoding="utf-8")


def test_a_roofline_that_cannot_be_drawn_is_refused_with_what_to_do(tmp_path: Path) -> None:
    images = a_profile("images", BLOCKED, 2.0, 10_496)
    with pytest.raises(UsageError, match=r"roof.png is not an HTML page.*name it roof.html"):
        plot_roofline([images], tmp_path / "roof.png")
    with pytest.raises(UsageError, match="nothing to draw"):
        plot_roofline([images.model_copy(update={"operators": ()})], tmp_path / "roof.html")
    assert list(tmp_path.iterdir()) == []


def test_more_than_a_peak_is_explained() -> None:
    fast, slow = (a_profile("case", PLAIN, ms, 64) for ms in (0.0005, 0.56))  # 463 Tflop/s of 62, and 0.4
    assert "Above 100% of a peak: conv2d 512x512x3x3 to 512x7x7: its data stay in a cache" in "\n".join(
        pages(fast, None)
    )
    assert "Above 100%" not in "\n".join(pages(slow, None))


def test_rows_that_do_not_add_up_to_the_whole_are_explained() -> None:
    whole = a_profile("case", PLAIN, 2.0, 64)
    words = "\n".join(pages(whole.model_copy(update={"kernels_ms": 2.1}), None))
    assert "together they are 95.2% of the median of all kernels" in words
    assert "together they are" not in "\n".join(pages(whole, None))


def test_operators_without_a_known_count_have_no_rate() -> None:
    operator = Operator(function="f", kernels=("f_kernel",), launches=1, ms=1.0, threads=1, work=None)
    profile = a_profile("case", PLAIN, 1.0, 4).model_copy(update={"operators": (operator,)})
    assert "GFLOP/s" in "\n".join(pages(profile, None))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"launches": [{"kernel": "k"}], "dropped": 0}',
        b'{"launches": [{"kernel": "k", "global": [1, 1], "local": [1, 1, 1], "queued": 1, "submit": 1, "start": 1, '
        b'"end": 1}], "dropped": 0}',
        b'{"launches": [{"kernel": "k", "global": [1, 1, 1], "local": [1, 1, 1], "queued": 1, "submit": 1, "start": 2, '
        b'"end": 1}], "dropped": 0}',
    ],
)
def test_launches_that_make_no_sense_are_refused(text: bytes) -> None:
    with pytest.raises(BadAnswer):
        launches_of(text)


def test_peaks_that_were_not_measured_are_left_out() -> None:
    assert rates_of(b'{"copy_bytes_s": 12, "float16_flop_s": null, "problem": ""}') == {"copy_bytes_s": 12.0}
    with pytest.raises(BadAnswer):
        rates_of(b'{"copy_bytes_s": "much"}')


def test_what_was_measured_elsewhere_does_not_replace_what_was_measured_from_here(tmp_path: Path) -> None:
    save_reported_peaks(tmp_path, "phone", {"copy_bytes_s": 1e9})
    save_peaks(tmp_path, "phone", {"copy_bytes_s": 2e9})
    save_reported_peaks(tmp_path, "phone", {"copy_bytes_s": 9e9})
    assert Peaks.model_validate_json((tmp_path / FOLDER / "phone.json").read_bytes()).copy_gb_s == 2


def test_it_says_what_waiting_and_launching_cost() -> None:
    alone = a_profile("tiny", PLAIN, 2.0, 64)
    assert "batches" not in "\n".join(pages(alone, None))
    timed = alone.model_copy(update={"batch": 32, "batched_ms": (2.01, 2.01), "synced_ms": (2.2, 2.2)})
    words = "\n".join(pages(timed, None))
    assert "2.01 ms in batches of 32, 2.2 ms when each is waited for; 1 launches, of which each costs 10 µs" in words
    assert Profile.model_validate_json(timed.model_dump_json(by_alias=True)) == timed


def test_peaks_of_an_identity_that_leads_out_of_the_cache_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be part of a file name"):
        save_reported_peaks(tmp_path / "cache", "../../outside", {"copy_bytes_s": 1e9})
    assert not list(tmp_path.rglob("outside*"))
