"""`adreno-bench profile`: where the time of an inference goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.base.case import Case
from harness.base.failures import UsageError
from harness.cli import options
from harness.cli.hints import last_words
from harness.judge.report.screen import Screen, out, out_json
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig, on_each_revision

if TYPE_CHECKING:
    from harness.measure.workbench import Request
    from harness.tools.profile.measure import WatchedProfile
    from harness.tools.shared.kernels.profile import Profile


@options.grouped
@last_words("nothing was profiled; what was built is kept; {command} starts again")
def profile(
    what: options.CaseOptions,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Compare with another case, a profile that --json wrote, the build in a folder of baselines, or what "
            "a TVM release or commit builds.",
        ),
    ] = None,
    device: options.DeviceName = options.DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    repeat: Annotated[int, typer.Option(metavar="NUMBER", min=1, max=1000, help="Number of inferences to watch.")] = 10,
    trace: Annotated[
        Path | None, options.file_option(metavar="FILE", help="Write the launches as a trace for Perfetto or Chrome.")
    ] = None,
    plot: Annotated[
        Path | None, options.file_option(metavar="FILE.html", help="Draw the operators as a roofline.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which kernels take the time, and why two cases or builds differ.

    The time of a kernel is that of its OpenCL event. Operations and bytes are those that the operator needs, from TIR.
    """
    from harness.tools.profile.measure import trace_of
    from harness.tools.profile.report import pages

    request = what.request()
    mine = _the_one(request.cases, "--case")
    with Screen() as screen:
        asked = _ProfileRequest(what, replace(request, cases=[mine]), device, repeat, screen)
        watched, against_profile = asked.both_sides(against, config)
    measured = watched.profile
    if trace:
        trace.write_text(trace_of(watched.inferences), encoding="utf-8")
    if plot:
        from harness.tools.profile.figures import plot_roofline

        plot_roofline([measured, against_profile] if against_profile else [measured], plot)
    if as_json:
        out_json(measured.model_dump(mode="json", by_alias=True))
    else:
        out("\n\n".join(pages(measured, against_profile)))


def _the_one(cases: Sequence[Case], option: str) -> Case:
    """Return the case that is meant. Raises UsageError if several are."""
    if len(cases) > 1:
        raise UsageError(f"{len(cases)} cases match, and a profile is of one", hint=f"try {option} '{cases[0].id}'")
    return cases[0]


@dataclass(frozen=True)
class _ProfileRequest:
    """What is to be watched, on which device, and who hears how it goes."""

    what: options.CaseOptions
    request: Request
    """Of one case."""
    device: str
    repeat: int
    screen: Screen

    def both_sides(self, against: str | None, config: Path) -> tuple[WatchedProfile, Profile | None]:
        """Return what was watched of the case, and the profile to compare it with."""
        case = self.request.cases[0]
        if against is None:
            return self._watch(case)[0], None
        if Path(against).is_file():
            from harness.tools.shared.kernels.profile import Profile

            profile = Profile.read(Path(against))
            return self._watch(case)[0], profile
        if Path(against).is_dir():
            here, blessed = self._watch(case, baselines=Path(against))
            return here, _named(blessed.profile, f"{case.id} of {against}")
        if any(case.matches(against) for reachable in self.request.suite.reachable for case in reachable):
            here, there = self._watch(case, _the_one(replace(self.what, case=[against]).request().cases, "--against"))
            return here, there.profile
        return self._with_revision(against, config)

    def _with_revision(self, word: str, config: Path) -> tuple[WatchedProfile, Profile]:
        """Profile the case as this TVM builds it, and as a release or commit does."""
        from harness.tools.profile.sides import profile_with
        from harness.tools.shared.revisions import revision
        from harness.tools.shared.toolchain import Toolchain

        case, cache = self.request.cases[0], self.request.cache
        try:
            base = revision(word, config, cache)
        except UsageError as error:
            raise UsageError(f"no case matches {word!r}, and {error.message}", hint=error.hint) from None
        run_options = on_each_revision(self.what, self.request.one_device(self.device, self.screen))
        # this may take minutes, in which the device is free
        toolchain = Toolchain.of(base, cache, run_options, self.screen.say)
        here = self._watch(case)[0]
        return here, _named(profile_with(toolchain, case.id, self.repeat), f"{case.id} by {base}")

    def _watch(self, *cases: Case, baselines: Path | None = None) -> list[WatchedProfile]:
        """Watch each case; with `baselines`, then the build that the first was blessed with."""
        from harness.measure.workbench import open_workbench
        from harness.tools.profile.measure import watch
        from harness.tools.profile.sides import watch_baseline
        from harness.tools.shared.kernels.peaks import peaks_of

        request, screen = replace(self.request, cases=list(cases)), self.screen
        with open_workbench(request, request.one_device(self.device, screen), screen) as bench:
            peaks = peaks_of(bench.device, request.cache, screen.say)
            profiles = watch(bench, self.repeat, peaks, screen)
            return [*profiles, watch_baseline(bench, baselines, self.repeat, peaks, screen)] if baselines else profiles


def _named(profile: Profile, name: str) -> Profile:
    """Return a profile under another name, as both sides are of one case."""
    return profile.model_copy(update={"case": name})
