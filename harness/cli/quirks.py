"""`adreno-bench quirks`: known upstream defects, and whether the installed TVM still has them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.cli.options import AsJson
from harness.cli.screen import out, out_json
from harness.compiler.installed import versions
from harness.process import cores
from harness.quirks import QUIRKS, ProbeAnswer, Quirk
from harness.quirks.ask import ask


def quirks(as_json: AsJson = False) -> None:
    """List the known defects of TVM, and probe the installed TVM for each.

    Essential ones are worked around even with --as-shipped. docs/explanation/quirks.md explains each.
    """
    with ThreadPoolExecutor(cores()) as pool:
        answers = list(pool.map(ask, QUIRKS))
    if as_json:
        out_json([_plain(q, a) for q, a in zip(QUIRKS, answers, strict=True)])
        return
    installed = versions()
    out(f"apache-tvm {installed['tvm']}, apache-tvm-ffi {installed['ffi']}\n")
    out("\n\n".join(_paragraph(q, a) for q, a in zip(QUIRKS, answers, strict=True)))


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
