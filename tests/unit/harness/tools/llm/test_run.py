"""What is measured of a step whose answer is right."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from harness.base.plan import Budget
from harness.measure.device_watch import DeviceWatch
from harness.measure.facts import Facts
from harness.tools.llm.part import LlmPart
from harness.tools.llm.run import StepProbe

PART = LlmPart(model="m", format="float32", pipeline="mlc", test="tg@d0", parameters=1, tokens=1, depth=0)


@dataclass
class WatchedStep:
    """A step of 4 ms that knows whether the device was looked at while it was timed."""

    watch: DeviceWatch
    looked_at: bool = False

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[int]]:
        return [[1, 2, 3]] * repeat

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.looked_at = self.looked_at or not self.watch.paused().locked()
        return [4.0] * repeat


def test_nobody_looks_at_the_device_while_a_step_is_timed() -> None:
    plan = SimpleNamespace(budget=Budget(quick=True), thermal_limits=None)
    watch, facts = DeviceWatch(), Facts()
    device = SimpleNamespace(steadily=lambda sample, _limits: (sample(), None))
    parts: Any = (
        SimpleNamespace(plan=plan),
        SimpleNamespace(reference=None),
        SimpleNamespace(device=device, watch=watch),
    )
    step: Any = WatchedStep(watch)
    facts.add(PART)
    for fact in StepProbe(*parts)(step, None, facts):  # type: ignore[arg-type]
        facts.add(fact)
    assert not step.looked_at
    assert (facts[LlmPart].launches, facts[LlmPart].tokens_per_s) == (3, 250.0)
