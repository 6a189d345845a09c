"""Count what an open compiler for Adreno makes of the kernels. docs/explanation/isa.md explains the counts.

The last parameter names the GPU and the compiler's version: another version is another series, never compared. There
are no such benchmarks where `adreno-bench isa setup` was not run: each would cost a process to say so.
"""

from __future__ import annotations

from pathlib import Path

from harness.tools.isa.code import MachineCode, codes_in
from harness.tools.isa.history import case_of, code_record_of, compiler, gpus

from .measured import SUITE, fail, known

COMPILER = compiler()


class _Kernels:
    """All kernels of a case, upstream defects worked around; of the cases that the suite has untuned."""

    params = (
        sorted({case.model for case in SUITE.cases}),
        sorted({case.path for case in SUITE.cases}),
        sorted({case.precision.value for case in SUITE.cases}),
        [f"{gpu} by {COMPILER}" for gpu in gpus()],
    )
    param_names = ("model", "path", "precision", "GPU")
    timeout = SUITE.longest_case_s
    version = "1"

    def setup_cache(self) -> None:
        """Nothing. That it stands here makes asv run all of a commit in one folder."""

    def setup(self, model: str, path: str, precision: str, gpu: str) -> None:
        """Get the machine code: compiled by the first benchmark that asks."""
        case = case_of(SUITE, model, path, precision)
        if case is None:
            raise NotImplementedError("the suite has no such case")
        self.record = code_record_of(SUITE, case, Path.cwd())
        self.code = next((code for code in codes_in(self.record) if code.gpu == gpu.partition(" ")[0]), None)

    def track_instructions(self, model: str, path: str, precision: str, gpu: str) -> float:
        """Issue slots of all threads of an inference, weighted by the trips of loops."""
        return known(self._code.per_inference("instructions_run"), self.record)

    track_instructions.unit = "instructions"  # type: ignore[attr-defined]

    def track_raw_instructions(self, model: str, path: str, precision: str, gpu: str) -> float:
        """Return the same with each loop's body counted once."""
        return known(self._code.per_inference("instructions"), self.record)

    track_raw_instructions.unit = "instructions"  # type: ignore[attr-defined]

    def track_share_of_a_wave(self, model: str, path: str, precision: str, gpu: str) -> float:
        """One over the fewest waves of any kernel: lower is better, as asv takes it."""
        return 1 / known(self._code.fewest_waves, self.record)

    track_share_of_a_wave.unit = "1 / waves"  # type: ignore[attr-defined]

    def track_spilling_kernels(self, model: str, path: str, precision: str, gpu: str) -> float:
        """Return kernels that keep values in memory because registers do not suffice."""
        return float(len(self._code.spilling))

    track_spilling_kernels.unit = "kernels"  # type: ignore[attr-defined]

    def track_refused_kernels(self, model: str, path: str, precision: str, gpu: str) -> float:
        """Return kernels that the compiler makes no code of."""
        return float(len(self._code.refused))

    track_refused_kernels.unit = "kernels"  # type: ignore[attr-defined]

    @property
    def _code(self) -> MachineCode:
        if self.code is None:
            fail(f"{self.record.outcome.value}: {self.record.message}")
        return self.code


if COMPILER:

    class Kernels(_Kernels):
        """The same, where there is a compiler."""
