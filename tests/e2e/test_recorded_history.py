"""The pages and summaries of a real history of three releases, which `tests/fixtures/history` has recorded.

tests/e2e/test_history.py measures it again, and compares.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import command
import pytest
from places import FIXTURES, ROOT

from harness.judge.history import releases
from harness.tools.shared.kernels.profile import read_profiles

pytestmark = pytest.mark.slow

RELEASES = ("0.25.0.post1", "0.26.0", "0.27.0.post1")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `history releases` makes it, without asking pip, with the recorded results and their pages."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releases, "_require_wheel", lambda release: None)
        patch.setattr(releases, "_harness_wheel", lambda *_: folder / "harness.whl")
        assert releases.maintain(folder, RELEASES) == list(RELEASES)
    shutil.copytree(FIXTURES / "history" / "results", folder / "results")
    code, _, err = command.bench(ROOT, folder / "cache", "history", "publish", "--config", f"{folder}/asv.conf.json")
    assert code == 0, err
    return folder


def test_the_page_of_changes_says_that_the_texture_path_became_wrong(published: Path) -> None:
    page = (published / "html" / "moved.html").read_text(encoding="utf-8")
    wrong = page.partition('id="wrong"')[2].partition('id="broken"')[0]
    assert "plain-texture-float32-untuned" in wrong
    assert wrong.index("TVM 0.25.0.post1") < wrong.index("TVM 0.26.0")
    assert "Wrong (1)" in page
    assert re.search(r"Nothing turned [^.]*broken", page)


def test_the_front_page_has_a_right_and_a_wrong_case(published: Path) -> None:
    front = (published / "html" / "index.html").read_text(encoding="utf-8")
    assert "✗ wrong" in front
    assert front.count("✓ right") == 2  # worked around, and the legend
    assert "Not the real thing here: soc, gpu" in front


def test_the_summary_counts_them(published: Path) -> None:
    words = ("history", "summary", "--markdown", "--config", f"{published}/asv.conf.json")
    code, out, err = command.bench(ROOT, published / "cache", *words)
    assert code == 0, err
    assert "1 right, 1 wrong" in out or "1 wrong, 1 right" in out
    assert "at TVM 0.27.0.post1" in out


def test_asv_show_says_why_a_case_failed(published: Path) -> None:
    words = [sys.executable, "-m", "asv", "--config", f"{published}/asv.conf.json", "show", "0.27.0.post1"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "plain-texture-float32-untuned as-shipped: wrong-result: " in shown.stdout, shown.stderr


def test_the_kernels_of_each_right_case_are_on_a_page_of_their_own(published: Path) -> None:
    files = list((published / "results").glob("*/*.kernels.gz"))
    profiles = [profile for file in files for profile in read_profiles(file, lambda _: True)]
    assert [profile.as_shipped for profile in profiles].count(False) == len(files) == len(RELEASES)
    assert all(operator.source and operator.work for profile in profiles for operator in profile.operators)
    assert profiles[0].peaks.copy_gb_s
    index = (published / "html" / "kernels.html").read_text(encoding="utf-8")
    pages = re.findall(r'href="(kernels-\w+\.html)"', index)
    told = "".join((published / "html" / page).read_text(encoding="utf-8") for page in pages)
    assert 'data-name="Operator">conv2d' in told
    assert "Another build." in told
