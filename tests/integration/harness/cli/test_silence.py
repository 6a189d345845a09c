"""No command is silent for long, whatever keeps it waiting, and where nobody sees a live list: in a pipe."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from fake_records import a_record
from fake_trials import FakeTrials
from terminal_scene import CASES, set_the_scene, skip_without_packages, write
from typer.testing import CliRunner

from device_runner.failures import RigFailure
from harness.base.outcome import Outcome
from harness.base.plan import Job
from harness.cli import app, every_command
from harness.compile.artifacts.pool import Watcher
from harness.judge.report import screen
from harness.measure.progress import STILL, Progress, Silence

DEVICE, PROBES = "device_runner.registry.open_device", "harness.tools.upstream.quirk_probes.probe_answers"
INSTALL = "harness.tools.shared.environment._make"
PROBES_BUILDER, ASV = "harness.tools.upstream.quirk_probes.Builder", "harness.judge.report.site.asv"
TRIALS = "harness.tools.explain.trial.open_trials"
RELEASES = ["0.25.0.post1", "0.27.0.post1"]
SLOW: dict[str, tuple[list[str], str]] = {
    "run": (["run"], "device_runner.runtimes.host.libraries"),
    "build": (["build"], DEVICE),
    "build for no device": (["build", "--device", "none"], "harness.measure.workbench.make_ready"),
    "tune": (["tune", "--case", CASES[0], "--device", "virtual"], "harness.tools.tune.devices.make_ready"),
    "ops": (["ops", "--device", "virtual"], "harness.tools.ops.run.catalogue"),
    "pack": (["pack"], "harness.measure.workbench.make_ready"),
    "gate": (["gate", "--device", "virtual"], DEVICE),
    "compare": (["compare", *RELEASES], INSTALL),
    "bisect": (["bisect", "--good", RELEASES[0], "--bad", RELEASES[1], "--case", CASES[0]], INSTALL),
    "calibrate": (["calibrate", "--device", "virtual", "--records", "new.jsonl"], DEVICE),
    "history run": (["history", "run"], "harness.cli.history.open_device"),
    "history publish": (["history", "publish"], ASV),
    "history releases": (["history", "releases", RELEASES[0]], "harness.judge.history.releases._require_wheel"),
    "diverge": (["diverge", "--records", "wrong.jsonl", "--device", "virtual"], DEVICE),
    "profile": (["profile", "--case", CASES[0]], DEVICE),
    "reduce": (["reduce", "--case", CASES[0], "--device", "virtual"], DEVICE),
    "reduce, at a trial": (["reduce", "--case", CASES[0], "--device", "virtual"], TRIALS),
    "records compact": (
        ["records", "compact", "records.jsonl", "--out", "dataset"],
        "harness.tools.lake.compaction._pool",
    ),
    "isa setup": (["isa", "setup"], "harness.tools.isa.apt._apt"),
    "quirks": (["quirks"], PROBES_BUILDER),
    "quirks --report": (
        ["quirks", "--report", "texture-store-broadcast", "--out", "out"],
        "harness.tools.upstream.report.reproduce",
    ),
}
"""What is typed, and what then takes long."""
HOW_FAR = {
    "run": "opening virtual: step 1 of 3: the runtimes",
    "history publish": r"publishing: asv has done \[ 25\.00%\]",
    "reduce, at a trial": r"trial 1, 5 operators of 5 left, at most \d+ min to go",
}
"""What is said of how far it is, beside what is done."""
QUICK = {
    "bless": "reads and writes files",
    "cache": "reads and removes files",
    "devices": "asks adb, with a deadline",
    "doctor": "prints each finding as it is known",
    "ingest": "reads files",
    "fleet": "waits for other hosts, and says what it does for them",
    "github": "asks GitHub, with a deadline",
    "init": "looks for files, with a limit",
    "inspect": "reads one network",
    "crossover": "reads records",
    "sustained": "reads records",
    "partitions": "reads records",
    "kernels": "reads records and names files",
    "list": "reads the suite",
    "report": "reads files",
    "runtime": "copies files",
}


def test_every_command_is_here() -> None:
    named = {words.replace(",", "").partition(" ")[0] for words in SLOW}
    assert named | QUICK.keys() | {"show", "history", "llm"} == {command.name for command in every_command()}


BY_THE_SCENE = (
    "harness.measure.workbench.open_workbench",
    "harness.tools.upstream.bisect.bisection.Bisection.run",
    PROBES,
)
"""What the scene replaces, and has to be itself here."""


@pytest.mark.parametrize("name", SLOW)
def test_what_takes_long_is_said_again_and_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_packages(name)
    real = {place: resolve_name(place) for place in BY_THE_SCENE}
    set_the_scene(tmp_path, monkeypatch)
    for place, value in real.items():
        monkeypatch.setattr(place, value)
    write("wrong.jsonl", [a_record(CASES[0], outcome=Outcome.WRONG_RESULT)])
    Path("results", "benchmarks.json").write_text("{}")
    monkeypatch.setattr(Silence, "FIRST_S", 0.05)
    monkeypatch.setattr(Silence, "LONGEST_S", 0.05)
    monkeypatch.setattr(screen, "LOOK_S", 0.02)
    met: list[bool] = []

    def slow(*_: Any, **__: Any) -> NoReturn:
        met.append(True)
        time.sleep(0.4)
        raise RigFailure("this took long")

    class SlowBuilder:
        """Begins every job, and finishes none."""

        def __init__(self, *_: object, watch: Watcher, **__: object) -> None:
            self.watch = watch

        def __enter__(self) -> SlowBuilder:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def begin(self, job: Job) -> SimpleNamespace:
            self.watch(job.title, "queued", 0.0)
            return SimpleNamespace(result=slow)

    def slow_asv(*_: Any, output: Callable[[str], None]) -> NoReturn:
        output("[ 25.00%] · Loading results")
        slow()

    arguments, place = SLOW[name]
    if place == TRIALS:  # on a device of plain Python, without the case's network

        def open_fakes(_request: object, _device: str, progress: Progress) -> AbstractContextManager[FakeTrials]:
            return nullcontext(FakeTrials(progress, meet=slow))

        monkeypatch.setattr(TRIALS, open_fakes)
    else:
        stand_ins = {PROBES_BUILDER: SlowBuilder, ASV: slow_asv}
        monkeypatch.setattr(place, stand_ins.get(place, slow))
    done = CliRunner().invoke(app, arguments)
    assert met, (done.output, done.exception)
    said = [line for line in done.stderr.splitlines() if STILL in line]
    assert len(said) >= 2, done.stderr
    assert re.search(HOW_FAR.get(name, ""), said[-1])
