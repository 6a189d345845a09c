"""Quantise networks to 8 bits as onnxruntime does it, with a suite file of the results.

    python -m benchmarks.exported_networks NETS
    python -m benchmarks.quantised_networks NETS FOLDER
    adreno-bench run --suite FOLDER/adreno-bench.toml --device DEVICE --case '*-float32-untuned'

Each network goes through two of four ways: QuantizeLinear and DequantizeLinear around operators of real numbers, with
scales of channels (`qdq_channels`) or of tensors (`qdq_tensors`), operators of 8 bits (`operators`), and scales that
are computed while it runs (`dynamic`). Ranges are those of three random inputs. A network that onnxruntime cannot
quantise is named and left out.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.exported_networks import write_suite

WAYS = ("qdq_channels", "qdq_tensors", "operators", "dynamic")
INPUTS = 3


def quantise(source: Path, way: str, target: Path) -> str:
    """Quantise a network. Returns why that failed; empty if it did not."""
    from onnxruntime import quantization

    logging.disable(logging.WARNING)  # onnxruntime recommends what is done here anyway
    kinds = quantization.QuantType
    signed, unsigned = kinds.QInt8, kinds.QUInt8
    styles = quantization.QuantFormat
    static = {
        "qdq_channels": {"quant_format": styles.QDQ, "activation_type": unsigned, "weight_type": signed},
        "qdq_tensors": {"quant_format": styles.QDQ, "activation_type": signed, "weight_type": signed},
        "operators": {"quant_format": styles.QOperator, "activation_type": unsigned, "weight_type": unsigned},
    }
    with tempfile.TemporaryDirectory() as folder:
        simple = Path(folder) / "simple.onnx"
        try:
            quantization.quant_pre_process(str(source), str(simple), skip_symbolic_shape=True)
            if way == "dynamic":
                quantization.quantize_dynamic(str(simple), str(target), weight_type=unsigned)
            else:
                options = {**static[way], "per_channel": way == "qdq_channels"}
                quantization.quantize_static(str(simple), str(target), _reader(simple), **options)
        except Exception as error:  # onnxruntime's quantiser raises errors of every kind
            return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def _reader(file: Path) -> Any:
    """Return random inputs for a network, in the form that the quantiser reads."""
    import numpy as np
    import onnx
    from onnxruntime.quantization import CalibrationDataReader

    value = onnx.load(file, load_external_data=False).graph.input[0]
    shape = [extent.dim_value for extent in value.type.tensor_type.shape.dim]
    chance = np.random.default_rng(0)

    class Inputs(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            draws = (chance.standard_normal(shape).astype(np.float32) for _ in range(INPUTS))
            self.left = ({value.name: draw} for draw in draws)

        def get_next(self) -> dict[str, Any] | None:
            return next(self.left, None)

    return Inputs()


def jobs(networks: Path, folder: Path) -> Iterator[tuple[Path, str, Path]]:
    """Yield each network with its two ways and the file to write."""
    for index, file in enumerate(sorted(networks.glob("*.onnx"))):
        for way in (WAYS[index % 4], WAYS[(index + 1) % 4]):
            yield file, way, folder / f"{file.stem}_{way}.onnx"


def main() -> None:
    """Quantise all networks and write the suite."""
    networks, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(jobs(networks, folder))
    with ProcessPoolExecutor() as pool:
        reasons = list(pool.map(quantise, *zip(*chosen, strict=True)))
    names = []
    for (_, _, target), reason in zip(chosen, reasons, strict=True):
        if reason:
            print(f"{target.stem}: not quantised: {reason}")
        else:
            names.append(target.stem)
    write_suite(folder, names)
    print(f"{len(names)} of {len(chosen)} networks in {folder}")


if __name__ == "__main__":
    main()
