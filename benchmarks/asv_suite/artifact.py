"""What the compiler made: numbers without noise, known before a device sees the library."""

from __future__ import annotations

from harness.compile.paths.clml.offload_report import OffloadReport

from .measured import Measured, known


class Artifact(Measured):
    """Of a case that was compiled, right or not."""

    def track_library_bytes(self, case: str, quirks: str) -> float:
        """Size of the library."""
        return known(self.record.library_bytes, self.record)

    track_library_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def track_compile_seconds(self, case: str, quirks: str) -> float:
        """From the ONNX file to the library; of the build that is in the store, whenever that was."""
        return known(self.record.compile_s, self.record)

    track_compile_seconds.unit = "s"  # type: ignore[attr-defined]

    def track_kernels(self, case: str, quirks: str) -> float:
        """OpenCL kernels."""
        return self._fact("kernels")

    track_kernels.unit = "kernels"  # type: ignore[attr-defined]

    def track_source_bytes(self, case: str, quirks: str) -> float:
        """Size of the kernels' source."""
        return self._fact("source_bytes")

    track_source_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def track_texture_tensors(self, case: str, quirks: str) -> float:
        """Intermediate tensors in images."""
        return self._fact("texture_tensors")

    track_texture_tensors.unit = "tensors"  # type: ignore[attr-defined]

    def track_buffer_tensors(self, case: str, quirks: str) -> float:
        """Intermediate tensors in plain memory."""
        return self._fact("buffer_tensors")

    track_buffer_tensors.unit = "tensors"  # type: ignore[attr-defined]

    def track_workspace_bytes(self, case: str, quirks: str) -> float:
        """Memory planned for intermediate tensors."""
        return self._fact("storage_bytes")

    track_workspace_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def _fact(self, name: str) -> float:
        return known(self.record.facts.get(name), self.record)


class Clml(Measured):
    """What went to CLML; only on the path that offloads."""

    def setup(self, case: str, quirks: str) -> None:
        """Require a compiled library and its offload report."""
        super().setup(case, quirks)
        known(self.record.library_bytes, self.record)
        if (offload := self.record.part(OffloadReport)) is None:
            raise NotImplementedError("this path offloads nothing")
        self.offload = offload

    def track_subgraphs(self, case: str, quirks: str) -> float:
        """Parts of the network in CLML."""
        return float(len(self.offload.subgraphs))

    track_subgraphs.unit = "subgraphs"  # type: ignore[attr-defined]

    def track_share_outside(self, case: str, quirks: str) -> float:
        """Share of multiply-accumulates that stayed outside CLML: lower is better, as asv takes it."""
        return 1.0 - self.offload.mac_share

    track_share_outside.unit = "of all MACs"  # type: ignore[attr-defined]
