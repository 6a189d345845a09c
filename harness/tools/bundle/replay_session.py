"""A session that is over: it answers with what a bundle's runner wrote down.

So a turn on a machine that could not be reached becomes a record by the same loop as any other: the host judges the
answer, and says whose fault a failure is. Nothing that comes from there is trusted to make sense; what does not raises
`BadReport`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from device_runner.device import Array, Launch, Loadable, PeakMemory, PushResult, Toggles
from device_runner.failures import DeviceCrash, Failure, Hang, NotRunAgain, RigFailure
from device_runner.foreign_json import read_json
from device_runner.runtimes.clml import INFO as CLML_INFO
from device_runner.runtimes.probe.answers import BadAnswer, batches_of, launches_of, memory_of
from device_runner.session.diagnosis import failure_of, how_ended
from harness.measure.facts import Timing

LARGEST_OUTPUT_BYTES = 256 << 20
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}


class BadReport(ValueError):
    """A report does not make sense: it is not what the runner writes."""


def text_of(value: Any) -> str:
    """Return a text of the runner, which writes each byte as one character."""
    return str(value).encode("latin-1", errors="replace").decode(errors="replace")


@dataclass(frozen=True)
class ProcessReport:
    """What the runner wrote of one process."""

    fields: Mapping[str, Any]
    runs: Sequence[list[Array]] = ()
    """The outputs of each run: of the case's inputs, then of labelled ones, of other ones, of the first again."""
    times: Timing | None = None
    """Times, only if the runner found the answer near enough."""
    reference_ms: Sequence[float] = ()
    """Samples of the reference kernel, in the order taken; empty if it was not timed."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> ProcessReport:
        """Parse an object of the runner. Raises BadReport, or the error of a malformed object."""
        labelled = (f"labelled{index}" for index in range(len(fields)))
        outputs = (fields[name] for name in ("outputs", *labelled, "other", "again") if name in fields)
        runs = [[_array(array) for array in each] for each in outputs]
        return cls(fields, runs, _times_in(fields), _times(fields, "reference_ms"))

    @property
    def done(self) -> bool:
        """Whether the process ended as it should."""
        return bool(self.fields.get("done"))

    @property
    def log(self) -> str:
        """The newest of what the process printed."""
        return self.text("log")

    def text(self, name: str) -> str:
        """Return a text of the report, empty if it has none of this name."""
        return text_of(self.fields.get(name, ""))

    def failure(self, timeout_s: float) -> Failure | None:
        """Return how the process failed, and whose fault it is; None if it ended as it should."""
        doing, evidence = self.text("doing") or "starting", self.log
        if "broken" in self.fields:
            return RigFailure(f"the bundle's runner gave up while {doing}: {self.text('broken')}", evidence=evidence)
        if "error" in self.fields:
            return failure_of(self.text("error"), doing)
        if self.fields.get("hung"):
            return Hang(f"{doing} did not end within {timeout_s:g} s", evidence=evidence)
        if self.done:
            return None
        number = int(self.fields.get("signal", 0))
        ending = how_ended(128 + number if number else int(self.fields.get("code", 0)))
        return DeviceCrash(f"the process {ending} while {doing}", evidence=evidence)


@dataclass
class ReplaySession:
    """Implements `device.Session`: the case is loaded first, the reference kernel second."""

    report: ProcessReport
    toggles: Toggles = field(default_factory=dict)
    _loaded: int = 0

    def load(self, loadable: Loadable, *, timeout_s: float) -> ReplayProgram:
        """Return the program that was loaded there. Raises the process's failure if it was not."""
        self._loaded += 1
        if self._loaded > 1:
            if not self.report.reference_ms:
                raise self.report.failure(timeout_s) or RigFailure("the reference kernel was not timed")
            return ReplayProgram(self.report, timeout_s, repeat([]), iter(self.report.reference_ms))
        program = ReplayProgram(self.report, timeout_s, iter(self.report.runs), iter(()))
        if "init_ms" not in self.report.fields:
            program.fail()
        return program

    def call(self, function: str, *, timeout_s: float) -> Any:
        """Return what our model of CLML said of itself; None of any other function, which was not called."""
        return (self.report.text("clml_info") or None) if function == CLML_INFO else None

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        """Return the probe's counts."""
        counts = self.report.text("programs")
        return {str(name): int(count) for name, count in read_json(counts).items()} if counts else {}

    def peak_memory(self, *, timeout_s: float) -> PeakMemory:
        """Return what the runner read after the first inference."""
        try:
            return memory_of(self.report.text("memory").encode())
        except BadAnswer:
            return PeakMemory()

    def download(self, path: str, *, timeout_s: float) -> bytes:
        """Nothing is there any more."""
        raise RigFailure(f"{path} was not brought along")

    def log(self) -> str:
        """Return the newest of what the process printed."""
        return self.report.log


@dataclass
class ReplayProgram:
    """Implements `device.Program`."""

    report: ProcessReport
    _timeout_s: float
    _runs: Iterator[list[Array]]
    _device_ms: Iterator[float]
    pushed = PushResult("", 0)

    @property
    def inferences(self) -> int:
        """Number of inferences in a row that were timed there."""
        return self.report.times.inferences if self.report.times else 1

    def fail(self) -> NoReturn:
        """Raise the process's failure; BadReport if it ended without what it should have written."""
        raise self.report.failure(self._timeout_s) or BadReport(
            "a turn ends without what the runner should have written"
        )

    @property
    def init_ms(self) -> float:
        """Loading and initialising."""
        return float(self.report.fields["init_ms"])

    def run(self, inputs: Sequence[Array], *, timeout_s: float) -> tuple[list[Array], float]:
        """Return the outputs of the next run, and the first run's ms; of the reference kernel neither was kept."""
        if (outputs := next(self._runs, None)) is None:
            if self.report.runs and self.report.done:
                raise NotRunAgain("the runner did not run it again")
            self.fail()
        return outputs, float(self.report.fields["first_run_ms"])

    @property
    def times(self) -> Timing:
        """The samples that the runner took. Raises the process's failure if it did not come to that."""
        if self.report.fields.get("near") is False:
            raise RigFailure("the runner did not time an answer that is right", hint="report it with the record")
        if self.report.times is None:
            self.fail()
        return self.report.times

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Nothing can be sampled any more: `times` has the runner's samples."""
        raise RigFailure("the session is over")

    def timed_answer(self, *, timeout_s: float) -> list[Array]:
        """Return what the program answered when it was run again at the end."""
        if not (runs := list(self._runs)):
            raise NotRunAgain("the runner did not run it again")
        return runs[-1]

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return the next samples of the reference kernel; of a case `times` has them."""
        if len(samples := [ms for _, ms in zip(range(repeat), self._device_ms, strict=False)]) < repeat:
            raise RigFailure("the session is over")
        return samples

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """Return the batches that were timed there. Raises RigFailure if they were others, or none."""
        if "batches" not in self.report.fields:
            raise self.report.failure(self._timeout_s) or RigFailure("no batches were timed")
        if int(self.report.fields["batch"]) != size:
            raise RigFailure("batches of another size were timed")
        return batches_of(self.report.text("batches").encode(), repeat)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the launches of one inference."""
        if not (answer := self.report.text("launches")):
            raise self.report.failure(self._timeout_s) or RigFailure("launches were not watched")
        launches, dropped = launches_of(answer.encode())
        if dropped:
            raise RigFailure(f"there was no room for {dropped} launches")
        return [launches]

    def binaries(self, *, timeout_s: float) -> bytes:
        """Raise the process's failure: the binaries stayed on the device."""
        raise self.report.failure(self._timeout_s) or RigFailure("the session is over")

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        """Do nothing: the runner did so."""


def _times_in(fields: Mapping[str, Any]) -> Timing | None:
    """Return the samples of a case, if it was timed. Raises BadReport."""
    if "inferences" not in fields:
        return None
    if not (wall_ms := _times(fields, "wall_ms")):
        raise BadReport("a turn was timed without a sample")
    warmed_up, inferences = bool(fields.get("warmed_up")), int(fields["inferences"])
    return Timing(wall_ms, _times(fields, "device_ms"), _times(fields, "warm_up_ms"), warmed_up, inferences)


def _times(fields: Mapping[str, Any], name: str) -> list[float]:
    times = [float(value) for value in fields.get(name, ())]
    least = 0 if name == "device_ms" else sys.float_info.min  # a driver's timer may not tick
    if not all(math.isfinite(value) and value >= least for value in times):
        raise BadReport(f"{name} contains an invalid time")
    return times


def _array(fields: Mapping[str, Any]) -> npt.NDArray[np.generic]:

    code, bits = map(int, fields["dtype"])
    content = bytes.fromhex(fields["hex"])
    if len(content) > LARGEST_OUTPUT_BYTES:
        raise BadReport("an output is larger than any of ours")
    kind = _KINDS[code]
    shape = tuple(int(size) for size in fields["shape"])
    return np.frombuffer(content, kind if kind == "bool" else f"{kind}{bits}").reshape(shape)
