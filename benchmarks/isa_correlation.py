"""How far the machine code of an open compiler tells what is slower: ranks, against published times and a real GPU's.

    python -m benchmarks.isa_correlation --write FOLDER     a suite of the networks that times were published of
    adreno-bench isa --suite FOLDER/my.toml --gpu a630,a740,a750 --records FOLDER/isa.jsonl
    adreno-bench isa --gpu a740 --records FOLDER/isa.jsonl --case '*-float32-untuned'
    python -m benchmarks.isa_correlation FOLDER/isa.jsonl

Prints tables in Markdown. Published times are those of benchmarks/isa_published.csv: of phones that were not named,
with tuned schedules of an earlier TVM. The real GPU is docs/profile.md's NVIDIA H200, which ran the default suite.
`rho` is Spearman's rank correlation: 1 if the order is the same. Beside it stand the pairs that are in another order.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

from scipy.stats import spearmanr

from harness.cases.case import Case
from harness.isa.code import MachineCode
from harness.models.graph import Network
from harness.models.graph_images import ImageGraph
from harness.models.summary import summarize
from harness.models.zoo import ZOO, resnet18
from harness.profile.machine_code import Build, operators_of, times_ms
from harness.profile.profile import Profile
from harness.run.record import RecordFile
from harness.tables import markdown_table

HERE = Path(__file__).parent
PUBLISHED = HERE / "isa_published.csv"
PROFILES = [HERE / f"sessions/h200-resnet18-{path}.json" for path in ("texture", "opencl")]
SESSIONS = HERE / "sessions/h200.jsonl"
MODELS = ("mobilenet_v1", "resnet18", "resnet50", "densenet121", "inception_v3")
"""Those of the zoo; resnet34 is made of the zoo's blocks."""
RESNET34 = (3, 4, 6, 3)
FEWEST = 3
"""Fewer are not ranked."""


class Told(NamedTuple):
    """What is known of a case without running it; more of it should be slower."""

    multiply_accumulates: float
    """Of the network, whatever the compiler: what every number here has to be better than."""
    instructions: float
    """Weighted instructions of an inference."""
    per_wave: float
    """The same, each kernel's divided by its waves: few waves hide little of what memory takes."""


@dataclass(frozen=True)
class Known:
    """A time that is known of a case."""

    source: str
    case: str
    ms: float


def resnet34() -> Network:
    """The network that the zoo lacks, of the zoo's blocks."""
    net = ImageGraph("resnet34", (1, 3, 224, 224))
    x = net.max_pool(net.conv_bn_relu(net.input, 64, 7, stride=2, pad=3), 3, stride=2, pad=1)
    for (channels, stride), blocks in zip(resnet18.STAGES, RESNET34, strict=True):
        for block in range(blocks):
            x = resnet18.basic_block(net, x, channels, 1 if block else stride)
    return net.classifier(x)


def write(folder: Path) -> None:
    """Write the suite, and the network that the zoo lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "resnet34.onnx").write_bytes(resnet34().to_bytes())
    names = ", ".join(f'"{name}"' for name in (*MODELS, "resnet34.onnx"))
    text = f'models = [{names}]\npaths = ["texture"]\nprecisions = ["float32", "float16"]\n[limits]\nbuild_s = 3600\n'
    (folder / "my.toml").write_text(text, encoding="utf-8")


@cache
def macs_of(model: str) -> int:
    """Multiply-accumulates of a network of the zoo, or of resnet34."""
    found = next((one.outline() for one in ZOO if one.name == model), None)
    return summarize(resnet34().outline() if found is None else found).macs


def told_of(case: str, code: MachineCode) -> Told | None:
    """What a case's code says; None if the trips of a loop in it are not known."""
    run = code.per_inference("instructions_run")
    kernels = [one for one in code.kernels if one.launched and one.waves]
    if run is None or not kernels:
        return None
    return Told(
        macs_of(Case.parse(case).model),
        run,
        sum((one.instructions_run_per_inference or 0) / (one.waves or 1) for one in kernels),
    )


def published() -> list[Known]:
    """The times that were published."""
    with PUBLISHED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Known(row["source"], f"{row['model']}-{row['path']}-{row['precision']}-untuned", float(row["ms"]))
        for row in rows
    ]


def measured() -> list[Known]:
    """The kernels' times of the real GPU, the median of each case."""
    records = [record for record in RecordFile(SESSIONS).load().records if record.device_ms]
    return [Known(record.identity.gpu, record.case, median(record.device_ms)) for record in records]


def main(file: Path) -> None:
    """Print all of it."""
    codes = {(record.case, code.gpu): code for record in RecordFile(file).load().records for code in record.isa}
    print(f"{', '.join(sorted({code.compiler for code in codes.values()}))}\n")
    told = {key: one for key, code in codes.items() if (one := told_of(key[0], code))}
    gpus = sorted({gpu for _, gpu in told})
    for known in (published(), measured()):
        rows = [row for gpu in gpus for row in _ranked(known, told, gpu)]
        if rows:
            print(
                markdown_table(rows, ("times of", "precision", "GPU", "ranked by", "n", "rho", "in another order")),
                end="\n\n",
            )
    print(markdown_table(list(_halved(published(), told, gpus)), ("network", "published", *gpus)), end="\n\n")
    rows = [row for gpu in gpus for row in _operators(codes, gpu)]
    print(markdown_table(rows, ("real GPU", "case", "GPU", "operators", "rho of instructions", "rho per wave")))


def _ranked(known: Iterable[Known], told: Mapping[tuple[str, str], Told], gpu: str) -> Iterator[tuple[object, ...]]:
    """Each source and precision: how well each number ranks the cases."""
    groups: dict[tuple[str, str], list[tuple[Known, Told]]] = {}
    for one in known:
        if mine := told.get((one.case, gpu)):
            groups.setdefault((one.source, Case.parse(one.case).precision.value), []).append((one, mine))
    for (source, precision), pairs in groups.items():
        if len(pairs) < FEWEST:
            continue
        times = [one.ms for one, _ in pairs]
        for what in Told._fields:
            numbers = [getattr(mine, what) for _, mine in pairs]
            wrong = [
                f"{_short(a.case)} and {_short(b.case)}"
                for ((a, _), x), ((b, _), y) in combinations(zip(pairs, numbers, strict=True), 2)
                if (a.ms - b.ms) * (x - y) < 0
            ]
            many = len(pairs) * (len(pairs) - 1) // 2
            yield (
                source,
                precision,
                gpu,
                what.replace("_", " "),
                len(pairs),
                _rho(times, numbers),
                f"{len(wrong)} of {many}{': ' if wrong else ''}{'; '.join(wrong)}",
            )


def _halved(
    known: Sequence[Known], told: Mapping[tuple[str, str], Told], gpus: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    """What half precision takes of single precision: by published times, and by instructions."""
    times = {(one.source, one.case): one.ms for one in known}
    for (source, case), ms in times.items():
        if "-float32-" not in case:
            continue
        half = case.replace("-float32-", "-float16-")
        ratios = [_ratio(told.get((half, gpu)), told.get((case, gpu))) for gpu in gpus]
        if any(ratio != "-" for ratio in ratios):
            yield f"{Case.parse(case).model} ({source})", f"{times[source, half] / ms:.2f}", *ratios


def _ratio(half: Told | None, single: Told | None) -> str:
    return f"{half.instructions / single.instructions:.2f}" if half and single else "-"


def _operators(codes: Mapping[tuple[str, str], MachineCode], gpu: str) -> Iterator[tuple[object, ...]]:
    """Within a network: whether the operators that run more instructions take longer on the real GPU."""
    for profile in map(Profile.read, PROFILES):
        code = codes.get((profile.case, gpu))
        if code is None:
            continue
        times = times_ms(profile)
        mine = operators_of(Build(profile.case, profile.case, code, [o.work for o in profile.operators if o.work]))
        both = [(times[kind], one) for kind, one in mine.items() if kind in times and one.run is not None]
        ms = [time for time, _ in both]
        run = [float(one.run or 0) for _, one in both]
        per_wave = [(one.run or 0) / (one.waves or 1) for _, one in both]
        yield profile.gpu, profile.case, gpu, len(both), _rho(ms, run), _rho(ms, per_wave)


def _rho(times: Sequence[float], numbers: Sequence[float]) -> str:
    return f"{spearmanr(times, numbers).statistic:+.2f}"


def _short(case: str) -> str:
    parsed = Case.parse(case)
    return f"{parsed.model} {parsed.path}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    if asked.write:
        write(asked.write)
    if asked.records:
        main(asked.records)
