"""Path `opencl`: TVM's Adreno target on plain buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from harness.compile.compiler.compat import relax, tvm
from harness.compile.compiler.pass_runner import run_passes, run_step
from harness.compile.compiler.passes import adreno_relax_passes, adreno_tir_passes, tir_pipeline
from harness.compile.compiler.tir import with_work
from harness.compile.paths.base import (
    BuiltModule,
    ImageLimits,
    PathFacts,
    Workaround,
    edit_relax,
    edit_tir,
    host_target,
    ignore_module,
)
from harness.compile.paths.kernels import check_images
from harness.compile.paths.lowered_module import path_facts, require_dispatch, require_threads


@dataclass(frozen=True)
class OpenCLPath:
    """All tensors in buffers. Target `qcom/adreno-opencl` (tvm/backend/adreno/target_tags.py)."""

    name: str = "opencl"
    family: ClassVar[str] = "opencl"
    keys: ClassVar[tuple[str, ...]] = ("adreno", "opencl", "gpu")

    def target(self, limits: ImageLimits, host_triple: str | None) -> Any:
        """Return the target with these limits."""
        return tvm.target.Target(self.attributes(limits), host=host_target(host_triple))

    def attributes(self, limits: ImageLimits) -> dict[str, Any]:
        """Return the tagged target's attributes, with the image limits of the device instead of those of Adreno."""
        return {
            "kind": "opencl",
            "device": "adreno",
            "keys": list(self.keys),
            "texture_spatial_limit": min(limits.image2d_max_width, limits.image2d_max_height),
            "texture_depth_limit": limits.image_max_array_layers,
        }

    def lower(self, mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
        """TVM's own Relax passes for this target, with the workarounds."""
        with target:
            return run_passes(edit_relax(with_work(adreno_relax_passes(target)), workarounds), mod)

    def build(
        self, module: Any, target: Any, workarounds: Sequence[Workaround], see: Callable[[Any], None] = ignore_module
    ) -> Any:
        """TVM's own TIR passes for this target, with the workarounds, then code generation.

        Raises CompileFailure for a function without a schedule, and for a sort or a scan.
        """
        require_dispatch(module)
        require_threads(module, self.name)
        passes = edit_tir(adreno_tir_passes(), workarounds)

        def run(mod: Any) -> Any:
            result = run_passes(passes, mod)
            see(result)
            return result

        with tir_pipeline(run) as pipeline:
            build = partial(relax.build, target=target, relax_pipeline=None, tir_pipeline=pipeline)
            return run_step("code generation", build, module)

    def check(self, built: BuiltModule) -> None:
        """Image parameters, if there are any, must be accessed as they are declared. Raises `InvalidKernel`."""
        check_images(built.source)

    def facts(self, built: BuiltModule) -> PathFacts:
        """Return the noise-free numbers."""
        return path_facts(built)
