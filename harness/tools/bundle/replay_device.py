"""A device that could not be reached: what a bundle brought back stands for it, one device for each turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from device_runner.adb_device import ABI_PROPERTY, phone_identity, properties_in
from device_runner.device import Identity, Pulse, PushResult, Rung, Steadiness, T, ThermalLimits, Toggles
from device_runner.failures import RigFailure
from device_runner.names import load
from device_runner.registry import PACE_BETWEEN
from device_runner.rpc_device import one_line
from device_runner.runtimes.probe.answers import BadAnswer, answer_of
from device_runner.session.identification import description_of
from device_runner.stability.judge import judge
from device_runner.stability.keeper import require_charge, too_busy, too_hot
from device_runner.stability.reading import reading
from device_runner.stability.sources import texts_in
from harness.tools.bundle.replay_session import BadReport, ProcessReport, ReplaySession, text_of
from harness.tools.shared.kernels.peaks import rates_of

UNHELD = "not held: a bundle changes no setting of a device"
UNBOUND = "not bound: a bundle's runner runs on any core"
TUNE, REFERENCE, TURNS = PREPARATIONS = "tune", "reference", "turns"
"""Sessions before the measured one, in their order: they tune, compile the reference kernel, find its turns."""


def identity_of(line: Mapping[str, Any], name: str, runtime: str) -> Identity:
    """Who a device is, from what the script asked of it. Raises BadReport."""
    answers, machine = line["said"], texts_in(text_of(line["machine"]))
    try:
        answer = answer_of(text_of(answers["describe"]).encode()) if "describe" in answers else None
    except BadAnswer as bad:
        raise BadReport(f"what the probe said of the device makes no sense: {bad}") from None
    names = text_of(answers["name"]), text_of(answers["driver_version"])
    fields = description_of(names, answer, lambda _: machine.get("sums", "")).fields
    fields |= {name: one_line(machine.get(name, "")) for name in ("chip", "board")}
    if not (values := properties_in(machine.get("properties", ""))):
        return _host_identity(machine, text_of(answers.get("libc", "")), name, runtime=runtime, **fields)
    abi = values.get(ABI_PROPERTY) or machine.get("machine", "")
    return phone_identity("phone", name, values, abi, runtime=runtime, **fields)


def _host_identity(machine: Mapping[str, str], libc: str, name: str, **fields: Any) -> Identity:
    """Identity as `local.LocalDevice` builds it: Python's `platform` reads the same from `uname` and the C library."""
    abi, processor = machine.get("machine", ""), machine.get("processor", "").replace("unknown", "")
    words = [machine.get("system", ""), abi, "" if processor == abi else processor, libc and f"with-glibc{libc}"]
    rom = re.sub(r"[ /\\:;\"()]", "-", "-".join(filter(None, words)))
    serial = machine.get("node") or name
    return Identity(kind="local", serial=serial, soc=processor or abi, rom=rom, abi=abi, **fields)


def peaks_in(line: Mapping[str, Any]) -> dict[str, float]:
    """Return what the device does at best; empty if that could not be measured. Raises BadReport."""
    try:
        return rates_of(text_of(line["said"]["peaks"]).encode()) if "peaks" in line["said"] else {}
    except BadAnswer as bad:
        raise BadReport(f"what was measured of the device makes no sense: {bad}") from None


@dataclass(frozen=True)
class TurnReport:
    """What came back of one turn."""

    preparations: Mapping[str, ProcessReport]
    measured: ProcessReport | None
    before: Mapping[str, str]
    """What the device said of its heat and pace, by source."""
    after: Mapping[str, str]

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> TurnReport:
        """Parse a line. Raises BadReport, or the error of a malformed line."""
        sessions = dict(line["said"])
        preparations = {name: ProcessReport.of(sessions.pop(name)) for name in PREPARATIONS if name in sessions}
        before, after = (texts_in(text_of(line[moment])) for moment in ("before", "after"))
        return cls(preparations, ProcessReport.of(sessions) if sessions else None, before, after)

    @property
    def sessions(self) -> list[ProcessReport]:
        """Sessions of a run that knows the results of the preparations: the failed ones, and the measured one."""
        failed = [report for report in self.preparations.values() if not report.done]
        return [*failed, *([self.measured] if self.measured else [])]


class ReplayDevice:
    """Implements `device.Device` for one turn: its sessions follow each other as they did there."""

    rungs: Sequence[Rung] = ()

    def __init__(self, name: str, identity: Identity, turn: TurnReport) -> None:
        self.name, self.identity, self._turn = name, identity, turn
        self._sessions = iter(turn.sessions)

    @contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[ReplaySession]:
        """Yield the next one. Raises RigFailure if there was none."""
        if (report := next(self._sessions, None)) is None:
            raise RigFailure("the bundle's runner held no such session")
        yield ReplaySession(report, toggles)

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """Return the path: the file was in the bundle, or made there."""
        return PushResult(file.name, 0)

    def prune(self, older_than_s: float) -> int:
        """Nothing is there."""
        return 0

    @contextmanager
    def scratch(self, name: str) -> Iterator[str]:
        """Folder of a tuning session."""
        yield name

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Return what the device said of its heat and pace around the turn, for which no knob was set."""
        pace: Steadiness | str = load(PACE_BETWEEN)(self._turn.before, self._turn.after, self.identity.gpu)
        if isinstance(pace, Steadiness):
            return work(), pace
        before, after = reading(self._turn.before), reading(self._turn.after)
        if self.identity.kind != "phone" and not before.facts:
            return work(), Steadiness(facts={"unavailable": [pace]} if pace else {})
        require_charge(before, limits)
        result = work()
        verdict = judge(before, after, tolerated_status=limits.thermal_status)
        started = {"hot_start": too_hot(before, limits), "busy_start": too_busy(before, limits)}
        facts = {**verdict.facts, **{name: why for name, why in started.items() if why}}
        return result, replace(verdict, facts={**facts, "held": UNHELD, "cores": UNBOUND})

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        """Sustained runs are not packed."""
        raise RigFailure("a session that is over cannot be looked at")
