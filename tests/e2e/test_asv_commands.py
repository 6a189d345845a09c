"""The commands of the real asv that measure or show commits, typed as asv's own documentation has them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from shared_runtimes import link_runtimes
from waiting import FENCE_S, LONG_S

from harness.judge.history.releases import checkout

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("warm_driver")]

SUITE = 'models = ["tiny"]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'
TENSORS = "artifact.Artifact.track_buffer_tensors"
DEPTHWISE = "    x = net.conv_bn_relu(x, 16, 3, pad=1, groups=16)\n"
LAYER = "    x = net.conv_bn_relu(x, 32, 1)\n"
HEAVY = 2
"""Number of the commit from which on the network has another layer."""


class Project:
    """A clone of this checkout with four commits, and asv's configuration for it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.clone = folder / "clone"
        self.commits: list[str] = []

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        command = ["git", "-C", str(self.clone), *identity, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, old: str, new: str) -> None:
        """Another commit, with a part of the network replaced."""
        network = self.clone / "harness/tools/zoo/tiny.py"
        network.write_text(network.read_text().replace(old, new))
        self.git("commit", "--allow-empty", "-qam", f"commit {len(self.commits)}")
        self.commits.append(self.git("rev-parse", "HEAD"))

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.home),
            "ADRENO_BENCH_CACHE": str(self.home / "cache"),
            "ADRENO_BENCH_SUITE": str(self.folder / "suite.toml"),
            "ADRENO_BENCH_DEVICE": "local",
        }

    def asv(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "asv", "--config", str(self.clone / "asv.conf.json"), command, *words]
        options: dict[str, Any] = {"cwd": self.clone, "env": self.environment, "capture_output": True, "text": True}
        return subprocess.run(line, **options, timeout=2 * LONG_S, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, sidecar_cache: Path) -> Project:
    home = tmp_path_factory.mktemp("home")
    kept = Path(pytestconfig.cache.mkdir("history"))
    link_runtimes(kept, sidecar_cache)
    (home / "cache").symlink_to(kept)
    made = Project(tmp_path_factory.mktemp("asv"), home)
    subprocess.run(["git", "clone", "-q", "--shared", checkout(), made.clone], check=True)
    made.commit(DEPTHWISE, "")  # which no release compiles as it is shipped
    made.commit("", "")
    made.commit(LAYER, LAYER * 2)
    made.commit("", "")
    (made.folder / "suite.toml").write_text(SUITE)
    # The packages of this environment stand in for those that every commit would install: minutes and gigabytes less.
    here = sysconfig.get_path("purelib")
    link = f"open(sysconfig.get_path('purelib') + '/all.pth', 'w').write('{{build_dir}}\\\\n{here}')"
    packages = f"import sysconfig; {link}"
    conf = json.loads(re.sub(r"^ *//.*$", "", (checkout() / "asv.conf.json").read_text(), flags=re.MULTILINE))
    conf |= {
        "build_command": [],
        "install_command": [f'in-dir={{env_dir}} python -c "{packages}"'],
        "branches": ["HEAD"],
    }
    (made.clone / "asv.conf.json").write_text(json.dumps(conf))
    return made


@pytest.fixture(scope="module")
def compared(project: Project) -> subprocess.CompletedProcess[str]:
    """The commit with the layer against the one before it."""
    return project.asv("continuous", project.commits[HEAVY - 1], project.commits[HEAVY], "--bench", TENSORS)


def test_continuous_measures_both_commits_and_says_what_became_worse(
    project: Project, compared: subprocess.CompletedProcess[str]
) -> None:
    said = compared.stdout + compared.stderr
    assert compared.returncode == 1, said  # as asv documents: something became worse
    assert re.search(rf"\|? *\+ .*{TENSORS}\('tiny-opencl-float32-untuned', 'workarounds'\)", said), said
    assert "PERFORMANCE DECREASED" in said
    machines = [json.loads(file.read_text()) for file in (project.clone / ".asv/results").glob("*/machine.json")]
    assert [machine["machine"].partition("-")[0] for machine in machines] == ["local"]


def test_continuous_of_equal_commits_finds_nothing(project: Project) -> None:
    done = project.asv("continuous", project.commits[0], project.commits[HEAVY - 1], "--bench", TENSORS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BENCHMARKS NOT SIGNIFICANTLY CHANGED" in done.stdout


def test_compare_shows_what_continuous_kept(project: Project, compared: subprocess.CompletedProcess[str]) -> None:
    assert compared.returncode == 1
    done = project.asv("compare", project.commits[HEAVY - 1], project.commits[HEAVY])
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if TENSORS in line and "workarounds" in line)
    before, after = (float(number) for number in re.findall(r"\| *(\d+) +(?=\|)", row)[:2])
    assert after == before + 2


def test_show_prints_what_a_commit_was_measured_as(
    project: Project, compared: subprocess.CompletedProcess[str]
) -> None:
    assert compared.returncode == 1
    assert project.commits[HEAVY][:8] in project.asv("show").stdout
    done = project.asv("show", project.commits[HEAVY])
    assert done.returncode == 0, done.stderr
    assert TENSORS in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_find_names_the_commit_that_did_it(project: Project) -> None:
    done = project.asv("find", f"{project.commits[0]}..{project.commits[-1]}", TENSORS)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.search(rf"Greatest regression found: {project.commits[HEAVY][:8]}", said), said
    machines = {file.parent.name.partition("-")[0] for file in (project.clone / ".asv/results").glob("*/machine.json")}
    assert machines == {"local"}


def test_publish_and_preview_show_a_page_that_a_browser_gets(
    project: Project, compared: subprocess.CompletedProcess[str]
) -> None:
    assert compared.returncode == 1
    html = project.clone / ".asv/html"
    shutil.rmtree(html, ignore_errors=True)
    done = project.asv("publish")
    assert done.returncode == 0, done.stdout + done.stderr
    assert TENSORS in json.loads((html / "index.json").read_text())["benchmarks"]
    line = [sys.executable, "-m", "asv", "--config", str(project.clone / "asv.conf.json"), "preview"]
    options: dict[str, Any] = {"cwd": project.clone, "env": {**project.environment, "PYTHONUNBUFFERED": "1"}}
    with subprocess.Popen(line, **options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as preview:
        try:
            assert preview.stdout
            said = next(line for line in preview.stdout if "Serving at" in line)
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", said)
            with urllib.request.urlopen(f"{address}index.json", timeout=FENCE_S) as answer:
                assert TENSORS in json.loads(answer.read())["benchmarks"]
        finally:
            preview.send_signal(signal.SIGINT)
