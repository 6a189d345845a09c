"""How far an answer may be off, by precision."""

from __future__ import annotations

from harness.base.case import Precision

RELATIVE_TOLERANCE = {"float32": 1e-5, "float16": 2e-2, "float16_acc32": 1e-2}
"""Tolerance relative to the oracle's scale, by precision, of a network that does not magnify rounding.

docs/data/accuracy.md derives that of float32, docs/reference/settings.md those of half precision."""

RESOLUTION = {Precision.FLOAT32: 2.0**-23, Precision.FLOAT16: 2.0**-10, Precision.FLOAT16_ACC32: 2.0**-10}
"""Relative distance of neighbouring numbers (IEEE 754). A finer tolerance would ask for what the format cannot hold."""

ROUNDING_FACTOR = {"float32": 8.0, "float16": 2.0**13, "float16_acc32": 2.0**13}
"""How much further than rounding moves the outside answer (`harness.compile.oracle.rounding`) a path's may lie. What
rounds to half precision rounds 2^13 times as coarsely."""
