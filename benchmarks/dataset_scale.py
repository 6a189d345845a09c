"""How long commands take on the records of many hosts, as lines and as a dataset of Parquet.

    python -m benchmarks.dataset_scale [--nights 30] [--hosts 10] [--phones 100] [--cases 100] [--in FOLDER]

Each host writes a file a night: each of its phones runs each case once, with a build of its own for each night. A row
for each command: seconds, seconds of processor time, and the most memory that a process took. The baselines are those
of the first host's phones in the night before the last; where all are blessed, those of all phones. Needs 11 GB in the
temporary folder, or in that of `--in`, where the lines are kept for the next time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.record_scale import COMMAND, EXAMPLE, HERE, NOISES, PHONE, artifact_of, case_of, cost, shape_of
from harness.measure.records.record import RecordFile

DAY_S = 86_400
FIRST_NIGHT_S = 20_000 * DAY_S
BETWEEN_S = 2
LIMIT_S = 1800.0


def lines(host: int, night: int, phones: int, cases: int, rng: random.Random) -> Iterator[str]:
    """Yield what one host writes in one night."""
    example = RecordFile(next(HERE.glob(EXAMPLE))).load().records[0]
    noises = [[rng.gauss(1, 0.008) for _ in range(12)] for _ in range(NOISES)]
    for number in range(phones):
        phone = replace(PHONE, serial=f"{host:02}{number:04}", extensions=example.identity.extensions)
        for case in range(cases):
            middle = (10 + case % 7) * rng.gauss(1, 0.004)
            samples = [[round(middle * noise, 6) for noise in rng.choice(noises)] for _ in range(2)]
            moment = FIRST_NIGHT_S + DAY_S * night + BETWEEN_S * (number * cases + case)
            started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
            yield shape_of(example, case, phone) % (artifact_of(case, night), *samples, started, f"{night:x}.{host:x}")


def main() -> None:
    """Make the files, run the commands, print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("nights", 30), ("hosts", 10), ("phones", 100), ("cases", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--in", type=Path, dest="folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dataset-scale-") as temporary:
        cache = Path(temporary)
        folder = (chosen.folder or cache).resolve() / f"{chosen.nights}-{chosen.hosts}-{chosen.phones}-{chosen.cases}"
        rng = random.Random(1)
        for host in range(chosen.hosts):
            for night in range(chosen.nights):
                file = folder / f"host{host}/night{night}.jsonl"
                if not file.exists():
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with file.open("w") as stream:
                        stream.writelines(lines(host, night, chosen.phones, chosen.cases, rng))
        before, last = (
            time.strftime("%Y-%m-%d", time.gmtime(FIRST_NIGHT_S + DAY_S * night))
            for night in (chosen.nights - 2, chosen.nights - 1)
        )
        case, model = case_of(1).id, case_of(1).model
        dataset = cache / "dataset"
        nights = [dataset / f"day={day}" for day in (before, last)]
        rows = {
            "records compact": ["records", "compact", folder, "--out", dataset],
            "records compact again": ["records", "compact", folder / "host0", "--out", dataset],
            "show": ["show", "--records", dataset],
            f"show CASE: {chosen.phones * chosen.hosts} phones": ["show", case, "--records", dataset],
            "show 'MODEL-*'": ["show", f"{model}-*", "--records", dataset],
            "show CASE, of one night": ["show", case, "--records", nights[1]],
            "devices --health of a phone": ["devices", "--health", "--device", "000000", "--records", dataset],
            "bless, of one host's night": ["bless", "--records", folder / f"host0/night{chosen.nights - 2}.jsonl"],
            "gate --from one host's night": ["gate", "--from", folder / f"host0/night{chosen.nights - 1}.jsonl"],
            "gate --from one night": ["gate", "--from", nights[1]],
            "bless, of all hosts' night": ["bless", "--records", nights[0], "--baselines", cache / "all"],
            "gate --from one night, all blessed": ["gate", "--from", nights[1], "--baselines", cache / "all"],
            "gate --from all nights, CASE": ["gate", "--from", dataset, "--case", case],
            "compare two nights, CASE": [
                "compare",
                *(dataset / f"day={day}" for day in (before, last)),
                "--case",
                case,
            ],
        }
        for name, arguments in rows.items():
            took = cost([*COMMAND, *map(str, arguments)], HERE, cache, LIMIT_S)
            print(f"{name:30} {took.seconds:7.1f} s, {took.cpu_seconds:6.1f} s of processor time, ", end="")
            print(f"{took.megabytes:5.0f} MB, exit code {took.code}", flush=True)


if __name__ == "__main__":
    main()
