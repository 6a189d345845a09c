"""Networks in half precision: files as a converter writes them, and a page of what ran.

    python -m benchmarks.exported_networks NETS
    python -m benchmarks.half_networks convert NETS FOLDER
    python -m benchmarks.half_networks page RECORDS... >docs/data/half-precision.md

`convert` writes each network with its numbers in half precision, as onnxruntime's converter does it, and a suite of the
results. The inputs and outputs of every other one stay in single precision. `page` prints a row for each network and
precision, with the newest record of each path.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.exported_networks import write_suite
from harness.base.case import Precision
from harness.base.outcome import Outcome
from harness.tools.shared.markdown import unpadded_markdown

PATHS = ("opencl", "texture", "clml")
PAGE = """# Networks in half precision

Networks of timm, as torch exports them and as onnxruntime's converter writes them in half precision (`_half`), and
trained ones of [the corpus](real-networks.md) · TVM {tvm} · virtual device with Intel's OpenCL. Made by

```
python -m benchmarks.exported_networks nets timm torchvision
python -m benchmarks.half_networks convert nets halves
ADRENO_BENCH_OPENCL_DEVICE=Intel adreno-bench run --quick --model nets/mobilenetv3_small_050.onnx --precision float16
python -m benchmarks.half_networks page records.jsonl >docs/data/half-precision.md
```

{right}, each number the error as a share of its tolerance. {vacuous} are right and prove nothing (`vacuous`).
Where it says `in part`, some outputs prove nothing.

{table}

## Transformers

```
python -m benchmarks.exported_networks nets transformers
cd nets && ADRENO_BENCH_OPENCL_DEVICE=Intel adreno-bench run --quick --path opencl --path texture --precision float16
python -m benchmarks.injected_faults --depths 4 --together 2 --precision float16 \\
  vit.onnx segformer.onnx wav2vec2.onnx clipvision.onnx bert.onnx
```

Of 98 small networks of transformers (without `ast` and `yolos`, which take minutes an inference there), 92 are right on
both paths, one in part, and 4 prove nothing. None is wrong. `vitmae` is not built: TVM has no operator for its random
numbers. The largest error of the right ones takes 0.55 of its tolerance (`clipvision`), the median 0.09. Only `umt5`,
`mpnet`, `yoso` and `groupvit` ran again when the bounds of ties became narrower (below).

* `mobilevit` and `mobilenetv1` prove nothing: with random weights the answers to two inputs differ by 2e-7 and 0.018 of
  the peak.
* Ties move the output of `groupvit` by 0.36 of its scale, and that of `yoso` by 0.61. The one gives each patch to the
  group with the largest score, the other makes an integer of `1 + mask / 10000`.
* Rounding moves one of the two outputs of `mobilebert` by 0.45 of its scale.
* 79 of 93 single faults that change five of them by more than rounding are caught. Those that are not are small
  (weights or scalars off by 1 %, 0.025 of the output at most).

## What else was seen

Measured once, on 2026-11-28:

* `texture` builds 54 networks of timm and torchvision and 27 of the corpus in float16, 23 files of the converter, and 9
  that torch exported in half precision (`model.half()`). One did not compile before, `raft_small_half`: TVM gives a
  GridSample of halves a result in float32.
* 212 node tests of ONNX with halves in place of float32, on `opencl` of the device `local`: 183 are right, 22 of which
  prove nothing with random inputs. 16 have no finite answer to those. The other 13 are no fault of half precision:
  random axes and shapes, operators without a kernel, and an RMSNormalization over all axes.
* A file in half precision is judged as its network is: rounding to float16 moves its numbers by 0.0142, and those of
  the same network in float32 as far (`mobilenetv3_small_050`). 4 times that is its tolerance.
* `python -m benchmarks.injected_faults --depths 4 --together 2 --precision float16`: of 35 single faults that change
  `mobilenetv3_small_050` by more than rounding, 31 are caught, and 31 of 35 in the converter's file of it. The others
  change the output by at most 0.042, and its tolerance is 0.057. In `test_convnext_half` 8 of 18 are caught, in
  `squeezenet1_0` 32 of 38. The others change it by less than 0.01, half of the tolerance. With `--precision
  float16_acc32` it is 33 of 35, 12 of 18 and 35 of 38.
* The same in trained networks with bounds and thresholds: of 26 faults in `basic_pitch` 17 are caught, and 24 in
  `float16_acc32`; in `svtr` 18 of 18.
* Products of integers (`MatMulInteger`, `ConvInteger`, `DynamicQuantizeLSTM`) are float32 in every precision, and
  exact. In halves those of `tashkeel` and `voicefilter` came to 1.42e5 and 3.0e5, and both were `out-of-range`. Where
  all products are of integers, what follows is float32 as well, and no kernel computes in half (`in float32`).
* `t5_encoder` and `smart_turn` quantise what they compute in halves, and proved nothing as long as a tie was 2 % of the
  tensor's peak wide, which is 5 of 255 steps. Now a number is at a tie if it reaches one when the operands and results
  of sums move: four times as far as `√(n/6)` halves of a unit, for n terms. The outputs may be off by 17 % and 10 % of
  their root mean square, instead of 189 % and 106 % ([wide tolerances](accuracy.md#wide-tolerances)). `smart_turn`
  stays `vacuous`: its answers to two random inputs are 0.979 and 0.982.
* Six of the transformers in 8 bits (`quantize_dynamic` of onnxruntime), with halves between the products, are right and
  prove something on both paths: the errors take 0.15 to 0.20 of their tolerance (`t5`, `deit`, `bert`, `wav2vec2`,
  `distilbert`, `roberta`).
* `ppocr_det` finds nothing in a random image.
* `terrain` leaves the range of a half in a convolution of its own (`conv2d_194`).
* 250 chains of up to four random operators in float16 and 36 in float16_acc32, on both paths (`python -m
  benchmarks.operator_attributes FOLDER --chain 3 --seed 881128`, and three seeds more): five were called wrong and two
  did not build, all by our doing. All are right now.
* 110 such chains that round, quantise or choose (seeds 4711, 91 and 92), on both paths: all are right, and 18 prove
  nothing. One was called wrong before, since a scalar that is compared hid all ties, and one did not build: TVM takes
  the diagonal of a `Trilu` of halves for a tensor.
* With random statistics of batch norms, TinyNet's answers to two inputs differ by 1.3e-4 of the peak, and nothing in
  float16 shows that. With statistics of what reaches the norms, they differ by more than the peak. ShuffleNet then
  loses 8 % of its output to half precision.
"""


def convert(source: Path, target: Path, *, keep_io: bool) -> str:
    """Convert a network. Returns why that failed; empty if it did not."""
    import onnx
    from onnxruntime import InferenceSession
    from onnxruntime.transformers.float16 import convert_float_to_float16

    try:
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=keep_io), target)
        InferenceSession(target, providers=["CPUExecutionProvider"])
    except Exception as error:  # of every kind; casts to float32 in a network become files that onnxruntime refuses
        target.unlink(missing_ok=True)
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def convert_all(networks: Path, folder: Path) -> None:
    """Convert every network of a folder, and write the suite."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for index, source in enumerate(sorted(networks.glob("*.onnx"))):
        target = folder / f"{source.stem}_half.onnx"
        if reason := convert(source, target, keep_io=index % 2 == 0):
            print(f"{target.stem}: not converted: {reason}")
        else:
            names.append(target.stem)
    write_suite(folder, names)


def cell(record: Mapping[str, Any]) -> str:
    """Return what became of a case: its outcome, and how much of the tolerance the error takes.

    A case without a kernel in half precision is one in float32.
    """
    outcome = "vacuous" if record.get("vacuous") else str(record["outcome"])
    outcome += " in part" if record.get("partly_vacuous") else ""
    facts = record.get("facts", {})
    halves = facts.get("half_kernels", 1) or facts.get("half_subgraphs", facts.get("subgraphs"))
    if record["precision"] != Precision.FLOAT32 and not halves:
        outcome += " in float32"
    error, tolerance = record.get("max_abs_err"), record.get("tolerance")
    share = float(error) / tolerance if error is not None and tolerance else math.inf  # a record has "Infinity"
    return f"{outcome}, {share:.2f}" if math.isfinite(share) else outcome


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page in Markdown, with how many cases are right."""
    cells = {(record["model"], record["precision"], record["path"]): cell(record) for record in records}
    lines = dict.fromkeys(key[:2] for key in cells)
    rows = [(*line, *(cells.get((*line, path), "") for path in PATHS)) for line in lines]
    proved = sum(text.startswith(Outcome.OK.value) for text in cells.values())
    return PAGE.format(
        tvm=records[-1]["tvm"],
        right=f"{proved} of {len(cells)} cases are right",
        vacuous=sum(text.startswith("vacuous") for text in cells.values()),
        table=unpadded_markdown(rows, ("network", "precision", *PATHS)),
    )


def main(verb: str, *places: str) -> None:
    """Convert networks, or print the page of records."""
    if verb == "convert":
        convert_all(*map(Path, places))
    else:
        print(page([json.loads(line) for place in places for line in Path(place).read_text().splitlines()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
