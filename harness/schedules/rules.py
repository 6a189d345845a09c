"""Schedules by TVM's own rules for GPUs, with what they leave open drawn by us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.compiler.tuner import without_intrinsics
from harness.schedules.apply import alone
from harness.schedules.drawing import CHOICE, TILE, Decision, Open, ThreadLimits, draw
from harness.schedules.trace import plain


class Rules:
    """TVM's own rules for GPUs, within a device's limits on threads and local memory."""

    def __init__(self, function: Any, target: Any, limits: ThreadLimits) -> None:
        self._function = function
        self._limits = limits
        with without_intrinsics():
            from tvm.s_tir import meta_schedule

            context = meta_schedule.TuneContext(
                alone(function),
                target=_limited(target, limits),
                space_generator="post-order-apply",
                rand_state=1,
                num_threads=1,
            )
        made = [design.trace for design in context.generate_design_space()]
        self._finish = list(context.space_generator.postprocs)
        self._designs = [_Design.of(trace) for trace in made]

    def sample(self, seed: int) -> Any:
        """One of the designs that the rules make, with its tile sizes drawn anew."""
        design = self._designs[seed % len(self._designs)]
        drawn = draw(design.opens, seed, self._limits)
        return None if drawn is None else self._made(design, drawn, seed)

    def decided(self, decisions: Sequence[Decision]) -> Any:
        """The design that these decisions fit, with them."""
        for design in self._designs:
            if design.fits(decisions) and (made := self._made(design, decisions, 0)) is not None:
                return made
        return None

    def _made(self, design: _Design, decisions: Sequence[Decision | None], seed: int) -> Any:
        from tvm import s_tir

        schedule = s_tir.Schedule(alone(self._function), seed=seed + 1, error_render_level="none")
        trace = s_tir.schedule.Trace(design.trace.insts, design.with_decisions(decisions))
        trace.apply_to_schedule(schedule, remove_postproc=True)
        return schedule if all(finish.apply(schedule) for finish in self._finish) else None


@dataclass(frozen=True)
class _Design:
    """One way in which the rules arrange the loops."""

    trace: Any
    opens: tuple[Open, ...]
    """What it leaves open, in its order."""

    @classmethod
    def of(cls, trace: Any) -> _Design:
        """What a design of TVM's leaves open, by what TVM drew itself."""
        decisions = trace.decisions
        return cls(trace, tuple(_open(one, decisions[one]) for one in trace.insts if one in decisions))

    def fits(self, decisions: Sequence[Any]) -> bool:
        """Whether these are decisions of this design."""
        return len(decisions) == len(self.opens) and all(
            one.fits(decision) for one, decision in zip(self.opens, decisions, strict=True)
        )

    def with_decisions(self, decisions: Sequence[Decision | None]) -> Mapping[Any, Any]:
        """As TVM's trace takes them; without those that are left to TVM."""
        drawing = (one for one in self.trace.insts if one in self.trace.decisions)
        return {one: decision for one, decision in zip(drawing, decisions, strict=True) if decision is not None}


def _open(instruction: Any, decision: Any) -> Open:
    kind, attributes = str(instruction.kind.name), instruction.attrs
    if kind == TILE:
        extent = 1
        for part in decision:
            extent *= int(part)
        return Open(kind, extent, int(attributes[0]), int(attributes[1]))
    if kind == CHOICE:
        return Open(kind, numbers=tuple(plain(attributes[0])))
    return Open(kind)


def _limited(target: Any, limits: ThreadLimits) -> Any:
    """The target with the limits of a device, which only the search obeys: no kernel is built for it."""
    from tvm.target import Target

    items = {"max_threads_per_block": limits.items, "max_num_threads": limits.items}
    return Target({**dict(target.export()), **items, "max_shared_memory_per_block": limits.local_bytes})
