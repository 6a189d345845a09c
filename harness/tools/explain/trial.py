"""One piece of a network, built and run as every case is: a model of its own, on given inputs, judged by the oracle."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from device_runner import store
from device_runner.device import Array
from device_runner.failures import DeviceLost, Failure
from device_runner.files import write_whole
from device_runner.store import Store, key_of, sha256_of
from harness.base.model import InnerModel
from harness.base.outcome import Outcome, Owner
from harness.base.plan import Job, Plan
from harness.base.request import QuirkPolicy
from harness.base.suite import Suite
from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, Answers, load_arrays, load_values
from harness.compile.artifacts.keys import values_job
from harness.compile.artifacts.planner import plan_case, plan_oracle
from harness.compile.models.onnx_read import load
from harness.measure.progress import Progress
from harness.measure.records.record import Record
from harness.measure.runner import run_suite
from harness.measure.workbench import Request, Workbench, open_workbench
from harness.tools.explain.pieces import CuttableNetwork, Piece, with_shapes
from harness.tools.explain.reduced_network import SmallNetwork

MODEL, VALUES = "piece.onnx", "inputs.npz"
PIECES = "pieces"
"""Folder of the cache for pieces that are kept."""
LOCK_WAIT_S = 60.0


class Finding(NamedTuple):
    """The outcome of a case, and whose it is."""

    outcome: Outcome
    owner: Owner

    @classmethod
    def of(cls, record: Record) -> Finding:
        """Return what a record found."""
        return cls(record.outcome, record.owner)


@dataclass(frozen=True)
class PieceTrial:
    """Result of a piece."""

    piece: Piece
    record: Record
    folder: Path
    """Folder with the files of its network and inputs."""


@dataclass(frozen=True)
class Trials:
    """Builds and runs pieces of one case's network on the device that the workbench holds."""

    bench: Workbench
    plan: Plan
    """Plan of the whole network."""
    network: CuttableNetwork
    values: dict[str, Array]
    """What the network's inputs are, and by tensor what the judge makes of them, as far as one can compute it."""
    folder: Path
    progress: Progress

    def whole(self) -> Record:
        """Return the network as it is, run again."""
        return self._run(self.plan)

    def run(self, piece: Piece, name: str) -> PieceTrial:
        """Build a piece and run it on the oracle's values of its inputs. Raises DeviceLost: then there is no answer."""
        return PieceTrial(piece, self.judge(self.network_of(piece, name), name), self.folder / name)

    def network_of(self, piece: Piece, name: str) -> SmallNetwork:
        """Return a piece with the oracle's values of its inputs."""
        self._ask([tensor for tensor in piece.inputs if tensor not in self.values], f"{name}_inputs")
        return with_shapes(piece, {tensor: self.values[tensor] for tensor in piece.inputs})

    def judge(self, network: SmallNetwork, name: str, *, as_shipped: bool = False) -> Record:
        """Build a network and run it on its inputs, with the defects worked around that were for the whole one.

        `as_shipped` works around only what nothing runs without. Raises DeviceLost: then there is no answer.
        """
        record = self._run(self._plan(network, name, as_shipped=as_shipped))
        if record.outcome is Outcome.DEVICE_LOST:
            raise DeviceLost(record.message, hint=record.hint, evidence=record.evidence)
        return record

    def builds(self, network: SmallNetwork, name: str) -> bool:
        """Return whether a network compiles. It is not run, and a compilation that failed is not repeated."""
        job = self._plan(network, name).compile
        return not isinstance(self.bench.builder.build([job])[job.key], Failure)

    def answers(self, network: SmallNetwork, name: str) -> list[Array]:
        """Return the oracle's answers to a network. Raises the failure if it has none."""
        job = plan_oracle(self._suite(network, name), name, self.bench.request.cache)
        return load_arrays(_answers(self.bench, job).folder / OUTPUTS)

    def _plan(self, network: SmallNetwork, name: str, *, as_shipped: bool = False) -> Plan:
        return plan_case(
            self._suite(network, name),
            dataclasses.replace(self.plan.case, model=name),
            self.bench.device.identity,
            self.bench.request.cache,
            QuirkPolicy(as_shipped=True, with_quirks=() if as_shipped else self.plan.quirks),
        )

    def _run(self, plan: Plan) -> Record:
        tolerance, factor = self.plan.relative_tolerance, self.plan.rounding_factor
        plan = dataclasses.replace(plan, relative_tolerance=tolerance, rounding_factor=factor, reference=None)
        run = dataclasses.replace(self.bench.run, names_operators=False)
        (record,) = run_suite([plan], run, self.bench.builder, None, self.progress)
        return record

    def _suite(self, network: SmallNetwork, name: str) -> Suite:
        """Return the suite with a network, written into files, as its only model."""
        model = write_whole(self.folder / name / MODEL, network.model)
        inputs = write_whole(self.folder / name / VALUES, npz(network.inputs))
        only = InnerModel(onnx=model, name=name, inputs=inputs, clean=False)  # the whole network was, before it was cut
        return self.bench.request.suite.model_copy(update={"models": [only], "tolerances": []})

    def _ask(self, tensors: list[str], name: str) -> None:
        """Ask the oracle for tensors inside the network."""
        if tensors:
            piece = self.network.making(tensors)
            self.values.update(zip(piece.outputs, self.answers(self.network_of(piece, name), name), strict=True))


@contextlib.contextmanager
def open_trials(request: Request, device: str, progress: Progress) -> Iterator[Trials]:
    """Open a device, and prepare trials of a request's only case. Raises the oracle's failure if it has no answers."""
    with (
        open_workbench(request, request.one_device(device, progress), progress, timed=False) as bench,
        _scratch(request.cache) as folder,
    ):
        (plan,) = bench.plans
        network = CuttableNetwork(load(Path(plan.compile.payload["request"]["model_file"])))
        inputs = load_arrays(_answers(bench, plan.oracle).folder / INPUTS)
        values = {**_values(bench, plan.oracle), **dict(zip(network.inputs, inputs, strict=True))}
        yield Trials(bench, plan, network, values, folder, progress)


@contextlib.contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """Yield a folder for pieces that are tried; below the cache, where it is found and pruned if we are killed."""
    (cache / PIECES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache / PIECES, prefix=".") as name:
        store.keep(Path(name))
        yield Path(name)


def keep(trial: PieceTrial, cache: Path) -> Path:
    """Keep the network and the inputs of a trial in the cache, for a report of the defect; returns their folder."""
    pieces = Store(cache, PIECES)
    key = key_of({name: sha256_of(trial.folder / name) for name in (MODEL, VALUES)})
    if pieces.find(key) is None:
        with pieces.making(key, LOCK_WAIT_S) as scratch:
            for name in (MODEL, VALUES):
                shutil.copyfile(trial.folder / name, scratch / name)
            (scratch / "title").write_text(f"{trial.record.outcome.value} of {trial.record.case}\n", encoding="utf-8")
    return pieces.folder / key


def _answers(bench: Workbench, job: Job) -> Answers:
    answers: Any = bench.builder.build([job])[job.key]
    if not isinstance(answers, Answers):
        failure: Failure = answers
        raise failure
    return answers


def _values(bench: Workbench, oracle: Job) -> dict[str, Array]:
    """Return every tensor inside the network, from one run of the judge; nothing if none can compute it."""
    job = values_job(oracle)
    answers = bench.builder.build([job])[job.key]
    if not isinstance(answers, Answers):
        return {}
    return load_values(answers.folder)


def npz(values: Mapping[str, Array]) -> bytes:
    """Pack arrays as an .npz file: equal arrays give equal bytes."""
    file = io.BytesIO()
    savez: Any = np.savez  # its stub takes no unpacked mapping
    savez(file, **values)
    return file.getvalue()
