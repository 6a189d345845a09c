"""Tuned cases through the real components: four situations, of which one counts as tuned."""

import shutil
from pathlib import Path

import pytest

from device_runner.device import Device
from device_runner.registry import open_device
from device_runner.store import SUMS
from harness.base.case import Case, Tuning
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.base.suite import Limits, Suite
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import BLOB, CACHE_VARIABLE, TuningStore

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow]

SUITE = Suite(models=["tiny", "squeezenet1_1"], paths=["clml"], budget_s=0.5)


@pytest.fixture(scope="module")
def device(cache: Path, warm_driver: dict[str, bool]):  # type: ignore[no-untyped-def]
    with open_device("virtual", cache) as opened:
        yield opened


def planned(device: Device, cache: Path, *cases: Case) -> tuple[list[Plan], Built]:
    plans = [plan_case(SUITE, case, device.identity, cache) for case in cases]
    with Builder(cache, Limits()) as builder:
        return plans, builder.build(job for plan in plans for job in (plan.compile, plan.oracle))


def run(device: Device, plan: Plan, built: Built, store: Path) -> Record:
    return run_case(plan, built, Run(device, TuningStore(store)), SilentProgress()).record


def kept(store: Path) -> Path:
    (blob,) = store.glob(f"tunings/*/{BLOB}")
    return blob


def put(store: Path, blob: Path) -> None:
    """Put another tuning where the store believes it has its own."""
    shutil.copyfile(blob, kept(store))
    (kept(store).parent / SUMS).unlink()


@pytest.mark.long
def test_clml_counts_as_tuned_only_with_the_cache_of_this_artifact(device: Device, cache: Path, tmp_path: Path) -> None:
    tuned = Tuning.TUNED
    cases = [Case("tiny", "clml"), Case("tiny", "clml", tuning=tuned), Case("squeezenet1_1", "clml", tuning=tuned)]
    (cold, warm, other), built = planned(device, cache, *cases)

    record = run(device, cold, built, tmp_path / "tiny")
    assert record.outcome is Outcome.OK
    assert record.proofs["clml_hits"] == record.proofs["clml_misses"] == []

    record = run(device, warm, built, tmp_path / "tiny")
    assert record.outcome is Outcome.OK, record.message
    assert record.proofs["clml_hits"]
    assert record.proofs["clml_misses"] == record.proofs["clml_stale"] == []
    assert CACHE_VARIABLE in record.toggles
    assert "clml" in record.emulated
    assert record.wall_ms == []

    assert run(device, other, built, tmp_path / "other").outcome is Outcome.OK
    put(tmp_path / "tiny", kept(tmp_path / "other"))
    record = run(device, warm, built, tmp_path / "tiny")
    assert record.outcome is Outcome.INCONCLUSIVE
    assert "CLML found no tuning for" in record.message
    assert record.proofs["clml_misses"]


def test_a_cache_of_another_driver_is_not_taken_for_tuned(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has every symbol, so CLML's log alone would say hit; the records do not fit its operators."""
    case = Case("tiny", "clml", tuning=Tuning.TUNED)
    with open_device("local", cache) as here:
        (plan,), built = planned(here, cache, case)
        monkeypatch.setenv("ADRENO_BENCH_CLML_VERSION", "3.0")
        assert run(here, plan, built, tmp_path).outcome is Outcome.OK
        monkeypatch.delenv("ADRENO_BENCH_CLML_VERSION")
        record = run(here, plan, built, tmp_path)
    assert record.outcome is Outcome.INCONCLUSIVE
    assert "does not fit" in record.message
    assert record.proofs["clml_misses"] == []


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_tuned_start_builds_no_program_from_source(device: Device, cache: Path, tmp_path: Path, path: str) -> None:
    cases = [Case("tiny", path, tuning=tuning) for tuning in (Tuning.UNTUNED, Tuning.TUNED)]
    plans, built = planned(device, cache, *cases)
    cold, warm = (run(device, plan, built, tmp_path) for plan in plans)
    assert (cold.outcome, warm.outcome) == (Outcome.OK, Outcome.OK)
    assert cold.proofs["programs_from_binary"] == warm.proofs["programs_from_source"] == 0
    assert warm.proofs["programs_from_binary"] >= cold.proofs["programs_from_source"] > 0
