"""Kernels of two builds of one case: what `gate`, `compare` (`Explain`) and `profile --against` show side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Built
from harness.judge.baseline import load
from harness.judge.compare import Comparison, KernelChange
from harness.judge.gate import Remeasure, blessed_plan
from harness.judge.stats.turns import Arm
from harness.measure.context import Run
from harness.measure.progress import Progress
from harness.measure.workbench import Workbench
from harness.tools.profile.groups import kernel_changes
from harness.tools.profile.measure import WatchedProfile, append_profile, watch_case
from harness.tools.shared.kernels.peaks import load_peaks
from harness.tools.shared.kernels.profile import Peaks, Profile, kernels_file
from harness.tools.shared.toolchain import Toolchain

REPEAT = 10
"""Inferences to watch on each side."""


def gate_kernels(again: Remeasure, comparison: Comparison) -> tuple[KernelChange, ...]:
    """Watch base, then head of a gated case, in a session of each, and keep the profiles. Raises Failure."""
    both, run = again.both(comparison), again.run
    peaks = load_peaks(again.cache, run.device.identity.key) or Peaks()
    base, head = (
        watch_case(both.plans[arm], both.built, run, REPEAT, peaks, again.progress).profile
        for arm in (Arm.BASE, Arm.HEAD)
    )
    base = base.model_copy(update={"tvm": both.blessed.tvm})
    for profile in (base, head):
        append_profile(kernels_file(again.records.path), profile)
    return kernel_changes(base, head)


def request_kernels(
    plans_of: Callable[[Comparison], Mapping[Arm, Plan]],
    built: Built,
    runs: Mapping[Arm, Run],
    progress: Progress,
    comparison: Comparison,
) -> tuple[KernelChange, ...]:
    """Do the same for two models, or two sets of options; the profiles are kept nowhere."""
    plans = plans_of(comparison)
    base, head = (
        watch_case(plans[arm], built, runs[arm], REPEAT, Peaks(), progress).profile for arm in (Arm.BASE, Arm.HEAD)
    )
    return kernel_changes(base, head)


def revision_kernels(
    toolchains: Mapping[Arm, Toolchain], records: Mapping[Arm, Path], comparison: Comparison
) -> tuple[KernelChange, ...]:
    """Ask `profile` of both revisions; the profiles are kept beside files of `records`. Raises Failure."""
    profiles = {arm: profile_with(toolchain, comparison.key.case) for arm, toolchain in toolchains.items()}
    for arm, file in records.items():
        append_profile(kernels_file(file), profiles[arm])
    return kernel_changes(profiles[Arm.BASE], profiles[Arm.HEAD])


def watch_baseline(bench: Workbench, folder: Path, repeat: int, peaks: Peaks, progress: Progress) -> WatchedProfile:
    """Return the profile of the build that a workbench's first case was blessed with.

    Raises what `watch_case` raises; UsageError without a baseline, or if its build is not in the store.
    """
    plan, identity = bench.plans[0], bench.device.identity.key
    records = [record for record in load(folder) if (record.case, record.identity_key) == (plan.case.id, identity)]
    if not records:
        raise UsageError(
            f"{folder} has no baseline of {plan.case.id} on {identity}", hint="`adreno-bench bless` makes one"
        )
    was, old = blessed_plan(plan, records[0], bench.builder)
    return watch_case(was, {**bench.builder.build(plan.jobs), **old}, bench.run, repeat, peaks, progress)


def profile_with(toolchain: Toolchain, case: str, repeat: int = REPEAT) -> Profile:
    """Return the profile of a case that a revision of the compiler builds. Raises RigFailure, UsageError."""
    text = toolchain.profile(case, repeat)
    try:
        return Profile.model_validate_json(text)
    except ValidationError as error:
        revision = toolchain.commands.revision
        raise RigFailure(f"{revision} printed no profile of {case}: {error.errors()[0]['msg']}") from error
