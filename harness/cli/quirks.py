"""`adreno-bench quirks`: known upstream defects, and whether the installed TVM still has them."""

from __future__ import annotations

from device_runner.store import cache_root
from harness.cases.plan import Job
from harness.cli.options import AsJson
from harness.cli.screen import Screen, out, out_json
from harness.compiler.installed import versions
from harness.quirks import QUIRKS, ProbeAnswer, Quirk


def quirks(as_json: AsJson = False) -> None:
    """List the known defects of TVM, and probe the installed TVM for each.

    Essential ones are worked around even with --as-shipped. The answers for a release of TVM stay in the cache.
    docs/explanation/quirks.md explains each.
    """
    from harness.build.quirk_probes import probe_answers

    installed, plain = versions(), []
    if not as_json:
        out(f"apache-tvm {installed['tvm']}, apache-tvm-ffi {installed['ffi']}")

    def watch(job: Job, state: str, seconds: float) -> None:
        screen.build(job.title, state, seconds)

    with Screen() as screen, probe_answers(QUIRKS, cache_root(), watch) as answers:
        for quirk, answer in zip(QUIRKS, answers, strict=True):
            plain.append(_plain(quirk, answer))
            if not as_json:
                out(f"\n{_paragraph(quirk, answer)}")
    if as_json:
        out_json(plain)


def _paragraph(quirk: Quirk, answer: ProbeAnswer) -> str:
    essential = ", essential" if quirk.essential else ""
    return "\n".join(
        [
            f"{quirk.id}: {answer.state.value}",
            f"  what      {quirk.title}",
            f"  seen      {answer.seen}",
            f"  releases  {quirk.releases} ({quirk.upstream})",
            f"  done      {quirk.workaround} (paths: {', '.join(quirk.paths)}{essential})",
        ]
    )


def _plain(quirk: Quirk, answer: ProbeAnswer) -> dict[str, object]:
    told = {"id": quirk.id, "title": quirk.title, "upstream": quirk.upstream, "releases": quirk.releases}
    more = {"paths": quirk.paths, "essential": quirk.essential, "workaround": quirk.workaround}
    return {**told, **more, "probe": answer.state.value, "seen": answer.seen}
