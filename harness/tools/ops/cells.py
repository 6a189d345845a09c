"""The cells of the table: one operator case on one path, and its result, kept so that nothing is run twice.

Each case is built as shipped, and as `run` builds it: prepared, with the known defects worked around. It is judged as
every network is, from outside TVM. Cells of another release of TVM come from this command, in the environment that
holds that release.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from device_runner.device import Identity
from device_runner.failures import RigFailure
from device_runner.store import Store, key_of
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.base.outcome import Outcome, Owner
from harness.base.plan import Job
from harness.compile.artifacts.keys import compile_job, oracle_job
from harness.compile.artifacts.planner import SEED, device_request, witness_request
from harness.compile.models.spec import Original
from harness.compile.quirks import quirks_for
from harness.measure.decide import decide
from harness.measure.facts import Accuracy, Facts
from harness.tools.ops.catalogue import INPUTS, MODEL, PREPARED, Catalogue, OperatorCase
from harness.tools.shared.revisions import revision
from harness.tools.shared.toolchain import CommandLine

MODES = {False: "with workarounds", True: "as shipped"}
"""What the table calls it, by `as_shipped`."""


@dataclass(frozen=True)
class Cell:
    """One operator case on one path, in one mode."""

    case: OperatorCase
    path: str
    precision: Precision
    as_shipped: bool
    compile: Job
    oracle: Job
    """Finds out the truth; `witness` asks LLVM."""
    witness: Job

    @property
    def title(self) -> str:
        """Title of the cell."""
        return f"{self.case.name} on {self.path}, {MODES[self.as_shipped]}"

    @property
    def dtype(self) -> str:
        """Number format of the computation."""
        return self.case.dtype if self.precision is Precision.FLOAT32 else self.precision.value

    @property
    def relative_tolerance(self) -> float:
        """Tolerance relative to the expected output's scale."""
        return RELATIVE_TOLERANCE["float16" if self.case.dtype == "float16" else self.precision.value]

    @property
    def rounding_factor(self) -> float:
        """What the case's rounding is multiplied with, to be allowed as well."""
        return ROUNDING_FACTOR["float16" if self.case.dtype == "float16" else self.precision.value]


def cells(
    catalogue: Catalogue,
    cases: Sequence[OperatorCase],
    paths: Sequence[str],
    identity: Identity,
    *,
    precision: Precision,
    modes: Sequence[bool],
) -> Iterator[Cell]:
    """Yield all that is to be known of the cases; the cells of one case stand together."""
    base = device_request(identity)
    for case in cases:
        oracle, witness = _judges(catalogue, case)
        for path in paths:
            for as_shipped in modes:
                quirks = list(_quirks(path, precision, as_shipped))
                file, sha256 = (MODEL, case.model_sha256) if as_shipped else (PREPARED, case.prepared_sha256)
                model_file = str(catalogue.file(case, file))
                request = replace(base, model_file=model_file, path=path, precision=precision.value, quirks=quirks)
                job = compile_job(request, sha256, f"{case.name} on {path}, {MODES[as_shipped]}")
                yield Cell(case, path, precision, as_shipped, job, oracle, witness)


def _judges(catalogue: Catalogue, case: OperatorCase) -> tuple[Job, Job]:
    """Return what finds out the truth about a case, and what asks LLVM."""
    asked = key_of({"model": case.prepared_sha256, "data": case.data_sha256})
    original, witness = Original(catalogue.file(case, MODEL)), witness_request(catalogue.file(case, PREPARED))
    job = oracle_job(original, witness, asked, SEED, case.name, catalogue.file(case, INPUTS))
    assert job.otherwise
    return replace(job, otherwise=None), job.otherwise  # the case has an answer of its own in the place of the truth


@functools.cache
def _quirks(path: str, precision: Precision, as_shipped: bool) -> tuple[str, ...]:
    return tuple(quirk.id for quirk in quirks_for(path, precision, as_shipped=as_shipped))


KIND = "operator_results"
RESULT = "result.json"
LOCK_WAIT_S = 60.0


class CellVerdict(str, Enum):
    """The word in the table; the best first."""

    RIGHT = "right"
    NOT_OFFLOADED = "not offloaded"
    """Right, but by the code of path `opencl`: nothing of it is in an image, or was given to CLML."""
    UNSUPPORTED = "unsupported"
    """The case builds, and this device cannot run it."""
    WRONG = "wrong"
    NOT_BUILT = "does not build"
    CRASH = "crashes"
    """The compiler or the process on the device died, or did not end."""
    NOT_RUN = "not run"
    """The device or the rig failed: nothing is known."""


VERDICTS = {
    Outcome.OK: CellVerdict.RIGHT,
    Outcome.WRONG_RESULT: CellVerdict.WRONG,
    Outcome.COMPILE_ERROR: CellVerdict.NOT_BUILT,
    Outcome.KERNEL_BUILD_ERROR: CellVerdict.NOT_BUILT,
    Outcome.RUNTIME_ERROR: CellVerdict.CRASH,
    Outcome.COMPILER_CRASH: CellVerdict.CRASH,
    Outcome.COMPILE_TIMEOUT: CellVerdict.CRASH,
    Outcome.DEVICE_CRASH: CellVerdict.CRASH,
    Outcome.HANG: CellVerdict.CRASH,
    Outcome.UNSUPPORTED: CellVerdict.UNSUPPORTED,
}


@dataclass(frozen=True)
class Result:
    """The outcome of one operator case on one path."""

    outcome: Outcome
    message: str = ""
    """One line; empty if it is right and nobody says otherwise."""
    max_rel_err: float | None = None
    """Largest error over the peak of the expected output, where it ran."""
    owner: Owner = Owner.NOBODY
    judge: str = ""
    """Who gave the answer that it is held to; empty if it did not run."""

    @classmethod
    def of(cls, facts: Facts, **fields: Any) -> Result:
        """Return what the facts mean."""
        decision, accuracy = decide(facts), facts.get(Accuracy)
        error = accuracy.max_rel_err if accuracy and accuracy.max_rel_err < float("inf") else None
        return cls(decision.outcome, decision.message, error, decision.owner, **fields)

    def verdict(self, *, own: bool) -> CellVerdict:
        """Return the word for it; `own` is whether the path did anything of its own."""
        if self.outcome is Outcome.OK and not own:
            return CellVerdict.NOT_OFFLOADED
        return VERDICTS.get(self.outcome, CellVerdict.NOT_RUN)


class CellStore:
    """Results under what they depend on.

    Those that blame a device or a rig are not kept, nor is a deadline that passed, which may be a busy machine's fault.
    """

    def __init__(self, cache: Path) -> None:
        self._store = Store(cache, KIND)

    def find(self, facts: dict[str, Any]) -> Result | None:
        """Return the result that is kept for these facts."""
        folder = self._store.find(key_of(facts))
        try:
            return msgspec.json.decode((folder / RESULT).read_bytes(), type=Result) if folder else None
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, facts: dict[str, Any], result: Result, title: str) -> Result:
        """Keep a result, and hand it on."""
        if result.outcome.conclusive and result.outcome is not Outcome.HANG:
            with self._store.making(key_of(facts), LOCK_WAIT_S) as scratch:
                (scratch / RESULT).write_text(json.dumps(dataclasses.asdict(result)), encoding="utf-8")
                (scratch / "title").write_text(f"{title}\n", encoding="utf-8")
        return result


LONGEST_S = 8 * 3600.0
"""Time limit for all cells of a release. Results are kept, so the next run continues."""


def cells_of(
    release: str, words: Sequence[str], config: Path, cache: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the cells of `adreno-bench ops WORDS` with a release or commit of TVM, which is installed if needed.

    Raises UsageError for what is none, InstallFailure, RigFailure.
    """
    line = CommandLine.of(revision(release, config, cache), cache, say)
    code, text, message = line.call(["ops", "--json", *words], LONGEST_S)
    try:
        cells: list[dict[str, Any]] = json.loads(text)
    except ValueError:
        raise RigFailure(
            f"{release} ended with code {code}: {message}", hint="run it again: what is done is kept"
        ) from None
    return cells
