"""The kernels of a build below its case, on the page of a run: from the profiles beside records, and of `--profile`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from harness.base.terminal import tell
from harness.judge.compare import KernelChange
from harness.judge.report.page import environment
from harness.judge.report.sections import Details, PageFiles
from harness.measure.records.record import Record
from harness.tools.profile.groups import kernel_changes
from harness.tools.profile.kernel_rows import rows_of
from harness.tools.profile.roofline import points_of, roof_bounds, roofline_strip
from harness.tools.shared.kernels.profile import Profile, kernels_file, read_profiles


def read_details(files: PageFiles, artifacts: Collection[str]) -> Details:
    """Return what the profiles of these artifacts show. Raises UsageError for a given file that is no profile."""
    profiles = _profiles(files, artifacts)
    template = environment(__package__).get_template("case_profile.html.j2")

    def block(record: Record) -> str:
        profile = profiles.get(record.artifact)
        if profile is None:
            return ""
        points = points_of(profile)
        low, high = roof_bounds(points, profile.roof)
        strip = roofline_strip(points, profile.roof, low, high)
        return template.render(profile=profile, strip=strip, low=low, high=high, rows=rows_of(profile))

    def moved(base: str, head: str) -> Sequence[KernelChange]:
        before, now = profiles.get(base), profiles.get(head)
        return kernel_changes(before, now) if before and now else ()

    return Details(block, moved)


def _profiles(files: PageFiles, artifacts: Collection[str]) -> dict[str, Profile]:
    """Return the newest profile of each artifact beside files of records, and those that were given."""
    profiles: dict[str, Profile] = {}
    try:
        profiles = _profiles_of_records(files.records, artifacts)
    except (OSError, ValueError) as error:
        tell(f"skipped the profiles: {error}")
    named = {file: Profile.read(file) for file in files.profiles}
    for file, profile in named.items():
        if profile.artifact not in artifacts:
            tell(f"{file} is the profile of another build of {profile.case}, which the page does not show")
    return profiles | {profile.artifact: profile for profile in named.values()}


def _profiles_of_records(records: Sequence[Path], artifacts: Collection[str]) -> dict[str, Profile]:
    """Return the newest profile of each artifact from the files beside records. Raises OSError, ValueError."""
    return {
        profile.artifact: profile
        for file in map(kernels_file, records)
        if file.exists()
        for profile in read_profiles(file, lambda head: head.artifact in artifacts)
    }
