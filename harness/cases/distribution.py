"""How an input is drawn, as the suite file and the command line say it: `integers(0, 50256)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from device_runner.names import suggestion
from harness.failures import UsageError

ARGUMENTS = {
    "normal": ("mean", "deviation"),
    "uniform": ("low", "high"),
    "integers": ("lowest", "highest"),
    "constant": ("value",),
}
"""Every kind and what it is told. The highest integer may be drawn."""
_FORM = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class Distribution:
    """What an input's elements are drawn from, independently of each other."""

    kind: str
    arguments: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Distribution:
        """Read `normal(0, 1)`, `uniform(0, 1)`, `integers(0, 9)` or `constant(1)`. Raises UsageError."""
        match = _FORM.fullmatch(text)
        kind = match.group(1) if match else text
        if not match or kind not in ARGUMENTS:
            known = [f"{name}({', '.join(told)})" for name, told in ARGUMENTS.items()]
            raise UsageError(f"{text!r} is no distribution", hint=suggestion(kind, known, otherwise="known are"))
        try:
            made = cls(kind, tuple(float(part) for part in match.group(2).split(",")))
        except ValueError:
            raise UsageError(f"{text!r} is told what is no number", hint=f"for example {kind}(0, 1)") from None
        made._require_sense(text)
        return made

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{argument:.17g}' for argument in self.arguments)})"

    def _require_sense(self, text: str) -> None:
        told = ARGUMENTS[self.kind]
        first, last = self.arguments[0], self.arguments[-1]
        if len(self.arguments) != len(told):
            raise UsageError(f"{text!r} is told {len(self.arguments)} numbers", hint=f"it takes {', '.join(told)}")
        if not all(abs(argument) < 2**53 for argument in self.arguments):
            raise UsageError(f"{text!r} is told a number that is too large", hint="below 2**53 each is exact")
        if self.kind in ("uniform", "integers") and first > last:
            raise UsageError(f"{text!r}: {first:g} is more than {last:g}", hint="give the lower one first")
        if self.kind == "integers" and not (first.is_integer() and last.is_integer()):
            raise UsageError(f"{text!r} is told no whole numbers", hint="for example integers(0, 9)")
        if self.kind == "normal" and last < 0:
            raise UsageError(f"{text!r}: a deviation is never below 0", hint="for example normal(0, 1)")
