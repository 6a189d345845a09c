"""No command is silent for long, whatever keeps it waiting, and where nobody sees a live list: in a pipe."""

from __future__ import annotations

import time
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from fake_records import a_record
from terminal_scene import CASES, set_the_scene, write
from typer.testing import CliRunner

from device_runner.failures import RigFailure
from harness.build.pool import Watcher
from harness.cases.plan import Job
from harness.cli import COMMANDS, app, screen
from harness.run.outcome import Outcome
from harness.run.progress import STILL, Silence

DEVICE, PROBES = "device_runner.registry.open_device", "harness.build.quirk_probes.probe_answers"
INSTALL = "harness.revisions.environment._make"
RELEASES = ["0.25.0.post1", "0.27.0.post1"]
SLOW: dict[str, tuple[list[str], str]] = {
    "run": (["run"], DEVICE),
    "build": (["build"], DEVICE),
    "build for no device": (["build", "--device", "none"], "harness.workbench.make_ready"),
    "tune": (["tune", "--case", CASES[0], "--device", "virtual"], "harness.tune.devices.make_ready"),
    "ops": (["ops", "--device", "virtual"], "harness.ops.run.catalogue"),
    "pack": (["pack"], "harness.workbench.make_ready"),
    "gate": (["gate", "--device", "virtual"], DEVICE),
    "compare": (["compare", *RELEASES], INSTALL),
    "bisect": (["bisect", "--good", RELEASES[0], "--bad", RELEASES[1], "--case", CASES[0]], INSTALL),
    "calibrate": (["calibrate", "--device", "virtual", "--records", "new.jsonl"], DEVICE),
    "history run": (["history", "run"], "harness.cli.history.open_device"),
    "history publish": (["history", "publish"], "harness.report.site.asv"),
    "history releases": (["history", "releases", RELEASES[0]], "harness.history.releases._require_wheel"),
    "show --diverge": (["show", "--diverge", "--records", "wrong.jsonl", "--device", "virtual"], DEVICE),
    "profile": (["profile", "--case", CASES[0]], DEVICE),
    "reduce": (["reduce", "--case", CASES[0], "--device", "virtual"], DEVICE),
    "records compact": (
        ["records", "compact", "records.jsonl", "--out", "dataset"],
        "harness.run.compaction._pool",
    ),
    "isa setup": (["isa", "setup"], "harness.isa.apt._apt"),
    "quirks": (["quirks"], "harness.build.quirk_probes.Builder"),
    "quirks --report": (
        ["quirks", "--report", "texture-store-broadcast", "--out", "out"],
        "harness.quirks.report.reproduce",
    ),
}
"""What is typed, and what then takes long."""
QUICK = {
    "bless": "reads and writes files",
    "cache": "reads and removes files",
    "devices": "asks adb, with a deadline",
    "doctor": "prints each finding as it is known",
    "ingest": "reads files",
    "fleet": "waits for other hosts, and says what it does for them",
    "init": "looks for files, with a limit",
    "inspect": "reads one network",
    "list": "reads the suite",
    "report": "reads files",
    "runtime": "copies files",
}


def test_every_command_is_here() -> None:
    named = {words.partition(" ")[0] for words in SLOW}
    assert named | QUICK.keys() | {"show", "history"} == {command.name for command in COMMANDS}


BY_THE_SCENE = ("harness.workbench.open_workbench", "harness.revisions.bisect.bisection.Bisection.run", PROBES)
"""What the scene replaces, and has to be itself here."""


@pytest.mark.parametrize("name", SLOW)
def test_what_takes_long_is_said_again_and_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            self.watch(job, "queued", 0.0)
            return SimpleNamespace(result=slow)

    arguments, place = SLOW[name]
    monkeypatch.setattr(place, SlowBuilder if place.endswith(".Builder") else slow)
    done = CliRunner().invoke(app, arguments)
    assert met, (done.output, done.exception)
    assert done.stderr.count(STILL) >= 2, done.stderr
