"""The tuner imports the tensor instructions of other processors, which takes 20 seconds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from harness.compiler.tuner import INTRINSICS
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import texture_target
from harness.quirks.tuner_sample import PATHS, into_image


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether making a `TuneContext` imports them; an empty module is imported in their place."""
    from tvm.s_tir import meta_schedule

    with _watched() as asked:
        meta_schedule.TuneContext(into_image(), target=texture_target(), num_threads=1)
    if asked:
        return ProbeAnswer(Presence.PRESENT, f"TuneContext imports {INTRINSICS}, for a target that has none of them")
    return ProbeAnswer(Presence.ABSENT, f"TuneContext does not import {INTRINSICS}")


class _Empty(MetaPathFinder, Loader):
    """Finds the module, and leaves it empty."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Of the one name; no other."""
        if name != INTRINSICS:
            return None
        self.asked.append(name)
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """A plain one."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing."""


@contextmanager
def _watched() -> Iterator[list[str]]:
    """What is asked for meanwhile; afterwards all is as it was."""
    finder, loaded = _Empty(), sys.modules.pop(INTRINSICS, None)
    sys.meta_path.insert(0, finder)
    try:
        yield finder.asked
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop(INTRINSICS, None)
        if loaded is not None:
            sys.modules[INTRINSICS] = loaded


QUIRK = Quirk(
    id="tuner-intrinsics",
    title="MetaSchedule imports other processors' tensor instructions: 20 s in each process, and its builders time out",
    upstream="python/tvm/s_tir/meta_schedule/tune_context.py, TuneContext.__init__; local_builder.py, default_build",
    since="0.25",
    paths=PATHS,
    probe=probe,
    workaround="an empty module stands in their place while a TuneContext is made (harness/compiler/tuner.py)",
)
"""No edit: nothing that a path builds imports them."""
