"""Tuning: what is made once, kept, and given to later runs; and the evidence that a run really used it.

* `opencl`, `texture`: the program binaries that the device's OpenCL compiler made
  (TVM: `opencl.GetPreCompiledPrograms`, `opencl.SetPreCompiledPrograms`).
* `clml`: the tuning cache that CLML writes when its process is started for it (`CLML_IS_TUNING_RUN`). TVM's runtime
  reads these switches once per process, only appends to the file, takes its first match, and says no more of a miss
  than a line in its log (apache/tvm src/runtime/extra/contrib/clml/clml_runtime.cc).

So a tuned case is two server processes: one that tunes into a file that is new, and one that is measured. What the
first made is kept under the artifact and the device's identity, so another build or driver never meets it. And a case
counts as tuned only if its own run says so.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import RigFailure
from device_runner.runtimes.clml import INFO as CLML_INFO
from device_runner.store import Store, key_of, sha256_of
from harness.base.case import Case
from harness.compile.paths import family_of
from harness.measure.facts import Proof

if TYPE_CHECKING:
    from device_runner.device import Array, Device, Loadable, Program, Session
    from harness.compile.artifacts.artifact import Artifact

BLOB = "tuning.bin"
LOCK_WAIT_S = 600.0
LARGEST_BLOB_BYTES = 256 << 20
"""What tuning may leave: it is pushed to the device, and the cache has it for each artifact and device."""

FROM_BINARY, FROM_SOURCE = "programs_from_binary", "programs_from_source"
SLOWED = "slowed_kernels"
"""How many kernels the virtual device slowed on purpose, by its log; docs/explanation/virtual-device.md."""

CACHE_VARIABLE = "CLML_TUNING_CACHE"
TUNING_VARIABLE = "CLML_IS_TUNING_RUN"
RECORD_MAGIC = 0x434C4D4C54554E45

_HIT = re.compile(r"Loading tuning cache for symbol\s*:\s*(\S+)")
_MISS = re.compile(r"Tuning cache not cound for symbol\s*:\s*(\S+)")
_SLOWED = re.compile(r"slowing kernel '(\S+)'")
_VERSION = re.compile(r"CLML Target Version\s*:\s*(\S+)")


class ProgramBinaries:
    """Programs that the device's OpenCL compiler need not compile again."""

    def tune(self, device: Device, loadable: Loadable, inputs: Sequence[Array], timeout_s: float) -> bytes:
        """Run once, which compiles every kernel, and take the binaries."""
        with device.session({}, timeout_s=timeout_s) as session:
            program = session.load(loadable, timeout_s=timeout_s)
            program.run(inputs, timeout_s=timeout_s)
            return program.binaries(timeout_s=timeout_s)

    def toggles(self, device: Device, blob: Path, timeout_s: float) -> dict[str, str]:
        """No toggles: the program reads the binaries itself."""
        return {}

    def use(self, program: Program, blob: Path, timeout_s: float) -> None:
        """Must happen before the first inference."""
        program.use_binaries(blob.read_bytes(), timeout_s=timeout_s)

    def proof(self, session: Session, blob: Path | None, timeout_s: float) -> Proof:
        """Return how many programs came from binaries and from source, as the probe counts them."""
        facts: dict[str, Any] = dict(session.program_counts(timeout_s=timeout_s))
        if slowed := set(_SLOWED.findall(session.log())):
            facts[SLOWED] = len(slowed)
        if blob is None:
            return Proof(facts)
        if FROM_SOURCE not in facts:
            return Proof(facts, "the device could not count how its programs were built")
        if facts[FROM_SOURCE]:
            return Proof(facts, f"{facts[FROM_SOURCE]} programs were still built from source")
        return Proof(facts, "" if facts[FROM_BINARY] else "no program was built from a binary")


class ClmlCache:
    """The file in which CLML keeps what it found while tuning."""

    def tune(self, device: Device, loadable: Loadable, inputs: Sequence[Array], timeout_s: float) -> bytes:
        """Run once in a process that tunes into a file that is new."""
        with device.scratch("clml-tuning") as path:
            toggles = {CACHE_VARIABLE: path, TUNING_VARIABLE: "1"}
            with device.session(toggles, timeout_s=timeout_s) as session:
                session.load(loadable, timeout_s=timeout_s).run(inputs, timeout_s=timeout_s)
                blob = session.download(path, timeout_s=timeout_s)
        tuning_symbols(blob)
        return blob

    def toggles(self, device: Device, blob: Path, timeout_s: float) -> dict[str, str]:
        """Return the path of the file on the device, under the hash of its content."""
        tuning_symbols(blob.read_bytes())
        return {CACHE_VARIABLE: device.push(blob, sha256_of(blob), timeout_s=timeout_s).path}

    def use(self, program: Program, blob: Path, timeout_s: float) -> None:
        """Do nothing: the process read it when it started."""

    def proof(self, session: Session, blob: Path | None, timeout_s: float) -> Proof:
        """Return hits and misses per symbol, from the log of TVM's runtime.

        It also calls an empty record a miss (`tune_buffer.size()`), though a part with nothing to tune has no other.
        """
        log, first = session.log(), dict(reversed(_tuning_records(blob.read_bytes()))) if blob else {}
        empty = {symbol for symbol, size_bytes in first.items() if not size_bytes}
        hits, missed = sorted(set(_HIT.findall(log))), set(_MISS.findall(log))
        misses, nothing_to_tune = sorted(missed - empty), sorted(missed & empty)
        version = _VERSION.search(log)
        answer = json.loads(session.call(CLML_INFO, timeout_s=timeout_s) or "{}")
        answer = answer if isinstance(answer, dict) else {}
        facts = {
            "clml_version": version.group(1) if version else "",
            "clml_hits": hits,
            "clml_misses": misses,
            **({"clml_nothing_to_tune": nothing_to_tune} if nothing_to_tune else {}),
            **({"clml_recordable_queue": answer["recordable_queue"]} if "recordable_queue" in answer else {}),
        }
        symbols: dict[str, dict[str, int]] = answer.get("symbols", {})  # only our model of CLML can tell
        stale = sorted(name for name, of in symbols.items() if of["hits"] and of["tuned"] < of["tunable"])
        complaint = _clml_complaint([*hits, *nothing_to_tune], misses, stale) if blob else ""
        return Proof({**facts, "clml_stale": stale}, complaint, emulated=bool(answer.get("emulated")))


def _clml_complaint(loads: Sequence[str], misses: Sequence[str], stale: Sequence[str]) -> str:
    if misses:
        return f"CLML found no tuning for {len(misses)} of its parts, first {misses[0]}"
    if stale:
        return f"CLML found tuning that does not fit {len(stale)} of its parts, first {stale[0]}"
    return "" if loads else "CLML's log names no tuning that it loaded"


Tuner = ProgramBinaries | ClmlCache
TUNERS: Mapping[str, Tuner] = {"opencl": ProgramBinaries(), "texture": ProgramBinaries(), "clml": ClmlCache()}
"""Tuners by the family of a path."""


def tuning_symbols(blob: bytes) -> list[str]:
    """Return the symbols of a CLML tuning file, in order. Raises RigFailure if it is damaged."""
    return [symbol for symbol, _ in _tuning_records(blob)]


def _tuning_records(blob: bytes) -> list[tuple[str, int]]:
    """Return the records of a CLML tuning file: symbol, and bytes of content.

    Format: u64 magic, u64 0, u64 length and symbol, u64 length and content, little-endian, repeated. Raises RigFailure
    for anything else: TVM's runtime would stop reading there without a word.
    """
    records: list[tuple[str, int]] = []
    at = 0
    try:
        while at < len(blob):
            magic, _, length = struct.unpack_from("<QQQ", blob, at)
            symbol, at = _piece(blob, at + 24, length)
            (length,) = struct.unpack_from("<Q", blob, at)
            _, at = _piece(blob, at + 8, length)
            if magic != RECORD_MAGIC:
                raise ValueError
            records.append((symbol.decode(), length))
    except (struct.error, ValueError):
        raise RigFailure(
            f"the CLML tuning file is damaged after {len(records)} records", hint="`adreno-bench cache --prune --all`"
        ) from None
    return records


def _piece(blob: bytes, start: int, length: int) -> tuple[bytes, int]:
    if length > len(blob) - start:
        raise ValueError
    return blob[start : start + length], start + length


@dataclass(frozen=True)
class CacheUse:
    """How the measured session of a case uses its tuning; an untuned case has none."""

    tuner: Tuner
    timeout_s: float
    blob: Path | None = None
    toggles: Mapping[str, str] = field(default_factory=dict)
    """Environment of the measured process."""

    def use(self, program: Program) -> None:
        """Give a loaded program its tuning, before its first run."""
        if self.blob:
            self.tuner.use(program, self.blob, self.timeout_s)

    def proof(self, session: Session) -> Proof:
        """Return the session's proof, after it ran."""
        return self.tuner.proof(session, self.blob, self.timeout_s)


class TuningStore:
    """Tuning results, by artifact and device identity."""

    def __init__(self, root: Path) -> None:
        self._store = Store(root, "tunings")

    def prepare(
        self,
        case: Case,
        artifact: Artifact,
        device: Device,
        inputs: Sequence[Array],
        timeout_s: float,
        tuning: Callable[[], object] = bool,
    ) -> CacheUse:
        """Make ready what the case's measured session needs; calls `tuning` before it opens a tuning session."""
        tuner = TUNERS[family_of(case.path)]
        if not case.tuning.cached:
            return CacheUse(tuner, timeout_s)
        blob = self.find_or_tune(case.path, artifact, device, inputs, timeout_s, tuning)
        return CacheUse(tuner, timeout_s, blob, tuner.toggles(device, blob, timeout_s))

    def find_or_tune(
        self,
        path: str,
        artifact: Artifact,
        device: Device,
        inputs: Sequence[Array],
        timeout_s: float,
        tuning: Callable[[], object] = bool,
    ) -> Path:
        """Return the blob of this artifact on this device; a session makes it if there is none."""

        def tune() -> bytes:
            tuning()
            return TUNERS[family_of(path)].tune(device, artifact.loadable, inputs, timeout_s)

        return self.find_or_make(path, artifact.key, device, tune)

    def find_or_make(self, kind: str, artifact: str, device: Device, make: Callable[[], bytes]) -> Path:
        """Return what is kept of this kind for an artifact on this device, made if there is none.

        Raises RigFailure if it is larger than `LARGEST_BLOB_BYTES`, and what `make` raises.
        """
        key = key_of({"path": kind, "artifact": artifact, "identity": device.identity.key})

        def fill(folder: Path) -> None:
            blob = make()
            if len(blob) > LARGEST_BLOB_BYTES:
                text = f"tuning left {len(blob)} bytes, and at most {LARGEST_BLOB_BYTES} are taken from a device"
                raise RigFailure(text, hint="leave the tuned cases of this model out of the suite")
            (folder / BLOB).write_bytes(blob)
            (folder / "title").write_text(f"{kind} {artifact} on {device.identity.key}\n", encoding="utf-8")

        return self._store.obtain(key, fill, LOCK_WAIT_S) / BLOB
