"""A device whose sessions are over: it answers with what the runner on a phone wrote down.

So what a phone without Python did becomes a record by the same way as any other (`harness.run.loop`): the host
judges the answer, reads heat and pace, and says whose fault a failure is. Nothing that comes from there is trusted to
make sense; what does not raises `Broken` while it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from device_runner.adb_device import ABI_PROPERTY, phone_identity, properties_in
from device_runner.device import Identity, Launch, Loadable, Pulse, Pushed, Rung, Steadiness, T, ThermalLimits, Toggles
from device_runner.failures import DeviceCrash, Failure, Hang, RigFailure
from device_runner.hardware import one_line
from device_runner.runtimes.probe import BadAnswer, answer_of, batches_of, launches_of, peaks_of
from device_runner.session.identification import described
from device_runner.session.tvm_errors import failure_of, how_ended
from device_runner.stability.cooling import require_charge, too_busy, too_hot
from device_runner.stability.judge import judge
from device_runner.stability.reading import reading
from device_runner.stability.sources import said_in
from harness.bundle.chain import Broken
from harness.cases.plan import Budget
from harness.probes.latency import Timing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from device_runner.device import Array

UNHELD = "not held: a bundle changes no setting of a phone"
UNBOUND = "not bound: a bundle's runner runs on any core"
LARGEST_OUTPUT_BYTES = 256 << 20
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}


def identity_of(told: Mapping[str, Any], name: str, runtime: str) -> Identity:
    """Who a device is, as the script found it out. Raises Broken."""
    said, machine = told["said"], said_in(_text(told["machine"]))
    try:
        answer = answer_of(_text(said["describe"]).encode()) if "describe" in said else None
    except BadAnswer as bad:
        raise Broken(f"what the probe said of the device makes no sense: {bad}") from None
    opencl = described((_text(said["name"]), _text(said["driver_version"])), answer, lambda _: machine.get("sums", ""))
    known = properties_in(machine.get("properties", ""))
    return phone_identity(
        "phone" if known else "local",
        name,
        known,
        known.get(ABI_PROPERTY) or machine.get("machine", ""),
        runtime=runtime,
        chip=one_line(machine.get("chip", "")),
        board=one_line(machine.get("board", "")),
        **opencl.fields,
    )


def peaks_in(told: Mapping[str, Any]) -> dict[str, float]:
    """What the device does at best; empty if that could not be measured."""
    try:
        return peaks_of(_text(told["said"]["peaks"]).encode()) if "peaks" in told["said"] else {}
    except BadAnswer as bad:
        raise Broken(f"what was measured of the device makes no sense: {bad}") from None


@dataclass(frozen=True)
class Seen:
    """What the runner wrote of one turn."""

    said: Mapping[str, Any]
    before: str
    """What the phone said of its heat and pace."""
    after: str
    outputs: list[Array] | None
    """The answer; None if it did not come to that."""
    timing: Timing | None
    """Its samples; only of an answer that the runner found near enough."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Seen:
        """From a line. Raises Broken, or what comes of a line of another form."""
        said = dict(told["said"])
        outputs = [_array(one) for one in said["outputs"]] if "outputs" in said else None
        timing = _timing(said) if "inferences" in said else None
        return cls(said, _text(told["before"]), _text(told["after"]), outputs, timing)

    @property
    def log(self) -> str:
        """The newest of what the process printed."""
        return self.text("log")

    def text(self, name: str) -> str:
        """A text that was told, empty if it was not."""
        return _text(self.said.get(name, ""))

    def failure(self, timeout_s: float) -> Failure | None:
        """How the turn's process failed, whose fault it is; None if it came to its end."""
        doing = self.text("doing") or "starting"
        if "broken" in self.said:
            return RigFailure(f"the bundle's runner gave up while {doing}: {self.text('broken')}", evidence=self.log)
        if "error" in self.said:
            return failure_of(self.text("error"), doing)
        if self.said.get("hung"):
            return Hang(f"{doing} did not end within {timeout_s:g} s", evidence=self.log)
        if self.said.get("done"):
            return None
        number = int(self.said.get("signal", 0))
        ending = how_ended(128 + number if number else int(self.said.get("code", 0)))
        return DeviceCrash(f"the process {ending} while {doing}", evidence=self.log)


class ToldDevice:
    """Implements `device.Device` for one turn."""

    rungs: Sequence[Rung] = ()

    def __init__(self, name: str, identity: Identity, seen: Seen) -> None:
        self.name, self.identity, self._seen = name, identity, seen

    @contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[ToldSession]:
        """The only one that there was."""
        yield ToldSession(self._seen)

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> Pushed:
        """It was in the bundle."""
        return Pushed(str(file), 0)

    def prune(self, older_than_s: float) -> int:
        """Nothing is there."""
        return 0

    @contextmanager
    def scratch(self, name: str) -> Iterator[str]:
        """A case that needs one cannot be packed."""
        raise RigFailure("nothing can be tuned in a session that is over")
        yield ""

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """What the phone said of its heat and pace around the turn. Nothing was waited for, and no knob was set."""
        before, after = (reading(said_in(text)) for text in (self._seen.before, self._seen.after))
        require_charge(before, limits)
        result = work()
        verdict = judge(before, after, tolerated_status=limits.thermal_status)
        started = {"hot_start": too_hot(before, limits), "busy_start": too_busy(before, limits)}
        facts = {**verdict.facts, **{name: why for name, why in started.items() if why}}
        return result, replace(verdict, facts={**facts, "held": UNHELD, "cores": UNBOUND})

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        """Sustained runs are not packed."""
        raise RigFailure("a session that is over cannot be looked at")


class ToldSession:
    """Implements `device.Session`."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self.toggles: Toggles = {}

    def load(self, loadable: Loadable, *, timeout_s: float) -> ToldProgram:
        """The program that was loaded there."""
        program = ToldProgram(self._seen, timeout_s)
        if "init_ms" not in self._seen.said:
            program.fail()
        return program

    def call(self, function: str, *, timeout_s: float) -> Any:
        """None: nothing else was asked."""
        return None

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        """What the probe counted."""
        told = self._seen.text("programs")
        return {str(name): int(count) for name, count in json.loads(told).items()} if told else {}

    def opencl_peaks(self, *, timeout_s: float) -> Mapping[str, float]:
        """They are told once for all turns."""
        return {}

    def download(self, path: str, *, timeout_s: float) -> bytes:
        """Nothing is there any more."""
        raise RigFailure(f"{path} was not brought along")

    def log(self) -> str:
        """The newest of what the process printed."""
        return self._seen.log


class ToldProgram:
    """Implements `device.Program`."""

    pushed = Pushed("", 0)

    def __init__(self, seen: Seen, timeout_s: float) -> None:
        self._seen, self._timeout_s = seen, timeout_s

    def fail(self) -> NoReturn:
        """Raise what the process failed with; Broken if it did not, and should have told more."""
        raise self._seen.failure(self._timeout_s) or Broken("a turn ends without what it should have told")

    @property
    def init_ms(self) -> float:
        """Loading and initialising."""
        return float(self._seen.said["init_ms"])

    def run(self, inputs: Sequence[Array], *, timeout_s: float) -> tuple[list[Array], float]:
        """The answer that came, and the first run's ms."""
        if self._seen.outputs is None:
            self.fail()
        return self._seen.outputs, float(self._seen.said["first_run_ms"])

    @property
    def timing(self) -> Timing:
        """The samples that were taken."""
        if self._seen.said.get("near") is False:
            raise RigFailure("the runner did not time an answer that is right", hint="report it with the record")
        if self._seen.timing is None:
            self.fail()
        return self._seen.timing

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Nothing can be sampled any more: `timing` has what was."""
        raise RigFailure("the session is over")

    device_ms = wall_ms

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """The batches that were timed there. Raises RigFailure if they were others, or none."""
        if "batches" not in self._seen.said:
            raise self._seen.failure(self._timeout_s) or RigFailure("no batches were timed")
        if int(self._seen.said["batch"]) != size:
            raise RigFailure("batches of another size were timed")
        return batches_of(self._seen.text("batches").encode(), repeat)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """The launches of one inference."""
        if not (told := self._seen.text("launches")):
            raise self._seen.failure(self._timeout_s) or RigFailure("launches were not watched")
        seen, dropped = launches_of(told.encode())
        if dropped:
            raise RigFailure(f"there was no room for {dropped} launches")
        return [seen]

    def binaries(self, *, timeout_s: float) -> bytes:
        """They were not kept."""
        raise RigFailure("the session is over")

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        """A case that needs it cannot be packed."""
        raise RigFailure("the session is over")


def timed_there(program: Any, budget: Budget) -> Timing:
    """What stands for `harness.probes.latency.measure`, which the runner did."""
    assert isinstance(program, ToldProgram)
    return program.timing


def _text(told: Any) -> str:
    """A text whose bytes were written as characters."""
    return str(told).encode("latin-1", errors="replace").decode(errors="replace")


def _timing(said: Mapping[str, Any]) -> Timing:
    def times(name: str) -> list[float]:
        told = [float(value) for value in said.get(name, ())]
        if not all(math.isfinite(value) and value > 0 for value in told):
            raise Broken(f"{name} has what is no time")
        return told

    if not (wall_ms := times("wall_ms")):
        raise Broken("a turn was timed without a sample")
    warmed_up, inferences = bool(said.get("warmed_up")), int(said["inferences"])
    return Timing(wall_ms, times("device_ms"), times("warm_up_ms"), warmed_up, inferences)


def _array(told: Mapping[str, Any]) -> npt.NDArray[np.generic]:
    import numpy as np

    code, bits = map(int, told["dtype"])
    content = bytes.fromhex(told["hex"])
    if len(content) > LARGEST_OUTPUT_BYTES:
        raise Broken("an output is larger than any of ours")
    kind = _KINDS[code]
    shape = tuple(int(size) for size in told["shape"])
    return np.frombuffer(content, kind if kind == "bool" else f"{kind}{bits}").reshape(shape)
