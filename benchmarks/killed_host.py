"""Commands whose process is killed at a random moment: what is torn, lost, doubled or left over?

    nice python -m benchmarks.killed_host [KILLS] [MINUTES] [SEED] [COMMAND,COMMAND]

Each of `run` (on the virtual device, 10 % of whose operations fail), `bless`, `ingest`, `tune` and `history run` is
given once and not killed. Then a command begins in an empty folder, is killed with SIGKILL at a random moment of the
time that it took, and is given again. After the kill no process may be left. After the second command its files must be
complete, without a record too few or too many, and the folder of temporary files must be empty. That is repeated until
KILLS commands were killed or MINUTES are over, with about the same time for each command. Unless commands are named,
three things are tried at the end: a clock that goes back, a home in which nothing can be written, and two commands at
once. Exits with 1 if anything was found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE

from tabulate import tabulate

from device_runner.store import cache_root
from harness.compile.schedules.database import read as read_schedules
from harness.measure.records.record import RecordFile
from harness.tools.cache.entries import LEFT_BEHIND, entries

BENCH = (sys.executable, "-c", "from harness.cli import main; main()")
CASES = ("tiny-opencl-float32-untuned", "tiny-texture-float32-untuned")
SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
FAULTS = {"chance": {"seed": 1, "rate": 0.1, "for_s": 1.0}}
MARK = "ADRENO_BENCH_KILLED_HOST"
GOOD, SLOWER, WRONG = 0, 1, 3
DEVICE_FAILED = 4
COMMAND_S = 900.0
GONE_S = 30.0
"""How long processes may take to notice that the command is dead."""

BACKWARDS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static time_t began;
int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, at);
    if (clock != CLOCK_REALTIME || status) return status;
    if (!began) began = at->tv_sec;
    if (at->tv_sec > began + 3) at->tv_sec -= 3600;
    return 0;
}
"""
"""Three seconds after a process has asked for the time, its clock goes back by an hour."""


@dataclass(frozen=True)
class Place:
    """Folders of one trial, and what a command finds around it."""

    root: Path

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        """The folder of temporary files."""
        return self.root / "tmp"

    @property
    def cache(self) -> Path:
        """The cache, which all trials share."""
        return self.root / "cache"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a command. `MARK` finds all that it starts."""
        own = {"HOME": self.root / "home", "TMPDIR": self.temporary, "ADRENO_BENCH_CACHE": self.cache, MARK: self.root}
        return {**os.environ, **{name: str(path) for name, path in own.items()}}

    def empty(self) -> None:
        """Begin anew, with an empty working directory and without temporary files."""
        for folder in (self.work, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        (self.root / "home").mkdir(exist_ok=True)
        (self.work / "adreno-bench.toml").write_text(SUITE)
        (self.work / "faults.json").write_text(json.dumps(FAULTS))

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command of adreno-bench."""
        environment = {**self.environment, **variables}
        streams = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": PIPE}
        return subprocess.Popen([*BENCH, *words], cwd=self.work, env=environment, text=True, **streams)  # type: ignore[call-overload, no-any-return]

    def finish(self, *words: str, **variables: str) -> tuple[int, str]:
        """Return exit code and error stream of a command that may take its time. Raises TimeoutExpired."""
        with self.start(*words, **variables) as process:
            try:
                _, errors = process.communicate(timeout=COMMAND_S)
            finally:
                process.kill()
        return process.returncode, errors

    def processes(self) -> list[str]:
        """Return the command lines of all processes that a command left here."""
        mark, found = f"{MARK}={self.root}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes()
                ours = mark in (process / "environ").read_bytes() or str(self.root).encode() in words
                if words and ours and int(process.name) != os.getpid():
                    found.append(words.replace(b"\0", b" ").decode(errors="replace")[:160])
        return found

    def litter(self) -> list[str]:
        """Return the temporary files that are left."""
        files = list(self.temporary.iterdir())
        files += self.work.rglob(".*.new")
        return [path.name for path in files]


@dataclass(frozen=True)
class Command:
    """A command to be killed."""

    name: str
    words: Sequence[str]
    prepare: Callable[[Place], None]
    """Puts into the empty folder what the command reads."""
    complaints: Callable[[Place], list[str]]
    """What is not as it should be after the second command."""
    codes: tuple[int, ...] = (GOOD,)
    """Exit codes of the second command with which all is well."""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What came of the kills of one command."""

    command: str
    takes_s: float = 0.0
    kills: int = 0
    found: tuple[str, ...] = ()


def of_records(place: Place, per_case: int = 1) -> list[str]:
    """Complaints about a file of records with each case a number of times."""
    loaded = RecordFile(place.work / "records.jsonl").load()
    counts = Counter(record.case for record in loaded.records if record.outcome.conclusive)
    found = [f"{case}: {counts[case]} records" for case in CASES if counts[case] != per_case]
    torn = [line for line in loaded.skipped if "schema" not in line]
    return found + torn


def of_baselines(place: Place) -> list[str]:
    """Complaints about the files of `bless`."""
    files = sorted((place.work / "baselines").rglob("*.json"))
    kept = [json.loads(file.read_text()) for file in files]
    return [] if len(kept) == len(CASES) else [f"{len(kept)} baselines"]


def of_schedules(place: Place) -> list[str]:
    """Complaints about the file of `tune`."""
    file = place.work / "schedules.jsonl"
    lines = file.read_text().splitlines()
    read_schedules(file)
    return [] if lines and len(set(lines)) == len(lines) else [f"{len(lines)} lines, {len(set(lines))} different"]


def of_history(place: Place) -> list[str]:
    """Complaints about what asv and we keep of two commits."""
    found, files = [], sorted((place.work / "results").glob("virtual-*/*.jsonl"))
    for file in files:
        loaded = RecordFile(file).load()
        counts = Counter((record.case, record.as_shipped) for record in loaded.records if record.outcome.conclusive)
        found += [f"{file.name}: {case}: {count} records" for case, count in counts.items() if count > 1]
        found += [] if len(counts) == 2 * len(CASES) else [f"{file.name}: {len(counts)} cases"]
        json.loads(file.with_suffix(".json").read_text())
    return found + ([] if len(files) == 2 else [f"{len(files)} files of commits"])


def write_history(place: Place) -> None:
    """Make a repository of two commits that install nothing, and asv's configuration for it."""
    checkout = Path(__file__).parents[1]
    repository = place.work / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    for number in range(2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"commit {number}"], check=True)
    paths = "\\n".join([str(checkout), *(path for path in sys.path if path.endswith("site-packages"))])
    link = f"import site; open(site.getsitepackages()[0] + '/all.pth', 'w').write('{paths}')"
    configuration = {
        "version": 1,
        "project": "nothing",
        "repo": str(repository),
        "branches": ["main"],
        "benchmark_dir": str(checkout / "benchmarks" / "asv_suite"),
        "env_dir": str(place.root / "environments"),
        "results_dir": str(place.work / "results"),
        "html_dir": str(place.work / "html"),
        "environment_type": "virtualenv",
        "build_command": [],
        "install_command": [f'in-dir={{env_dir}} python -c "{link}"'],
        "launch_method": "forkserver",
        "plugins": [".harness.tools.asv.plugin"],
    }
    (place.work / "asv.conf.json").write_text(json.dumps(configuration))


def commands(place: Place) -> list[Command]:
    """Return all commands; makes the records and the bundle that two of them read."""
    given = place.root / "given"
    given.mkdir()
    place.empty()
    must(place.finish("run"))
    shutil.copy(place.work / "records.jsonl", given)
    must(place.finish("pack", "--out", "bundle"))
    script = ["sh", str(place.work / "bundle" / "run.sh"), str(given / "results")]
    subprocess.run(script, check=True, stdout=DEVNULL, stderr=DEVNULL, env=place.environment)

    def give(name: str) -> Callable[[Place], None]:
        def copy(to: Place) -> None:
            source = given / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, to.work / name)

        return copy

    faulty = {"ADRENO_BENCH_VIRTUAL_FAULTS": "faults.json"}
    tuned = ("tune", "--device", "local", "--case", CASES[0], "--trials", "4")
    history = ("history", "run", "ALL", "--suite", "adreno-bench.toml")
    return [
        Command("run", ("run", "--resume"), lambda _: None, of_records, (GOOD, WRONG, DEVICE_FAILED), faulty),
        Command("bless", ("bless",), give("records.jsonl"), of_baselines),
        Command("ingest", ("ingest", "results"), give("results"), of_records, (GOOD, SLOWER)),
        Command("tune", tuned, lambda _: None, of_schedules),
        Command("history run", history, write_history, of_history, (GOOD, WRONG)),
    ]


def must(ended: tuple[int, str]) -> None:
    """Raise SystemExit if a command did not end well."""
    if ended[0]:
        raise SystemExit(f"a command that nobody killed ended with {ended[0]}: {ended[1][-500:]}")


def time_of(place: Place, command: Command) -> float:
    """Return how long a command takes that nobody kills, in seconds."""
    place.empty()
    command.prepare(place)
    began_s = time.monotonic()
    code, errors = place.finish(*command.words, **command.variables)
    takes_s = time.monotonic() - began_s
    if code not in command.codes or (found := code != DEVICE_FAILED and command.complaints(place)):
        raise SystemExit(f"{command.name}, not killed, ended with {code} {found}: {errors[-1000:]}")
    return takes_s


def kill_once(place: Place, command: Command, after_s: float) -> list[str] | None:
    """Kill a command and give it again; return what was found, None if it ended before it could be killed."""
    place.empty()
    command.prepare(place)
    with place.start(*command.words, **command.variables) as process:
        try:
            process.wait(after_s)
            return None
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
        assert process.stderr
        process.stderr.close()  # what it started may hold the other end
    found = [f"left running: {one}" for one in wait_until_gone(place)]
    code, errors = place.finish(*command.words, **command.variables)
    found += [f"left running after the second: {one}" for one in wait_until_gone(place)]
    if code not in command.codes:
        return [*found, f"the second ended with {code}: {errors[-300:]}"]
    if code != DEVICE_FAILED:  # then the device that fails at random lost a case, which is not the host's doing
        found += command.complaints(place)
    return found + [f"temporary: {name}" for name in place.litter()]


def wait_until_gone(place: Place) -> list[str]:
    """Return the processes that are left after a while."""
    end_s = time.monotonic() + GONE_S
    while (left := place.processes()) and time.monotonic() < end_s:
        time.sleep(0.1)
    return left


def kill_all(
    place: Place, chosen: Sequence[Command], kills: int, minutes: float, chance: random.Random
) -> dict[str, Result]:
    """Kill commands so often, or for so long; each gets about the same time. Returns the results by name."""
    results = {one.name: Result(one.name, time_of(place, one)) for one in chosen}
    spent_s = dict.fromkeys(results, 0.0)
    end_s = time.monotonic() + 60 * minutes
    while sum(one.kills for one in results.values()) < kills and time.monotonic() < end_s:
        command = min(chosen, key=lambda one: spent_s[one.name])
        result, began_s = results[command.name], time.monotonic()
        after_s = chance.uniform(0, result.takes_s)
        outcome = kill_once(place, command, after_s)
        spent_s[command.name] += time.monotonic() - began_s
        if outcome is None:
            continue  # it was faster this time
        said = f"{command.name} killed after {after_s:.2f} s: {'; '.join(outcome) or 'ok'}"
        print(said, file=sys.stderr, flush=True)
        found = (*result.found, *([said] if outcome else []))
        results[command.name] = replace(result, kills=result.kills + 1, found=found)
    return results


def clock_that_goes_back(place: Place) -> list[str]:
    """Return what is found when the host's clock goes back while it runs."""
    place.empty()
    (place.root / "clock.c").write_text(BACKWARDS)
    library = place.root / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, place.root / "clock.c", "-ldl"], check=True)
    code, errors = place.finish("run", LD_PRELOAD=str(library))
    return ([] if code == GOOD else [f"ended with {code}: {errors[-300:]}"]) + of_records(place)


def home_that_cannot_be_written(place: Place) -> list[str]:
    """Return what is found when nothing can be written in the home, with a cache elsewhere and without."""
    place.empty()
    code, errors = place.finish("run", HOME="/proc")
    found = ([] if code == GOOD else [f"ended with {code}: {errors[-300:]}"]) + of_records(place)
    code, errors = place.finish("run", HOME="/proc", ADRENO_BENCH_CACHE="", XDG_CACHE_HOME="")
    last = errors.strip().splitlines()[-1] if errors.strip() else ""
    named = code == DEVICE_FAILED and "ADRENO_BENCH_CACHE" in last and "Traceback" not in errors
    return found + ([] if named else [f"without a cache it ended with {code}: {last}"])


def two_at_once(place: Place) -> list[str]:
    """Return what is found when one command is given twice at the same time."""
    place.empty()
    both = [place.start("run") for _ in range(2)]
    codes = []
    for process in both:
        with process:
            process.communicate(timeout=COMMAND_S)
        codes.append(process.returncode)
    return ([] if codes == [GOOD, GOOD] else [f"ended with {codes}"]) + of_records(place, 2)


def main(kills: str = "20", minutes: str = "inf", seed: str = "1", names: str = "") -> None:
    """Kill, and print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Place(Path(scratch))
        kept = shutil.ignore_patterns("virtual", "devices", "leases", "toolchains", "releases", ".*")
        shutil.copytree(cache_root(), place.cache, ignore=kept)  # so that nothing is compiled twice
        chosen = [one for one in commands(place) if not names or one.name in names.split(",")]
        results = [*kill_all(place, chosen, int(kills), float(minutes), random.Random(int(seed))).values()]
        for trial in (clock_that_goes_back, home_that_cannot_be_written, two_at_once) if not names else ():
            results.append(Result(trial.__name__.replace("_", " "), found=tuple(trial(place))))
        left = [f"cache: {one.kind} {one.key}" for one in entries(place.cache) if one.title == LEFT_BEHIND]
    rows = [(one.command, f"{one.takes_s:.1f} s", one.kills, len(one.found)) for one in results]
    print(tabulate(rows, ("command", "takes", "kills", "found"), disable_numparse=True))
    found = [line for one in results for line in one.found] + left
    print("\n".join(found) or "nothing torn, lost, doubled or left over")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
