"""A plain `asv run`, `asv continuous` or `asv find`, filed under the identity of the device, as `history run` files it.

asv itself files results under the name of the host, where a second device of the host would overwrite the numbers of
the first. A case that is wrong or broken is a result, so it does not make the command fail.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from device_runner.device import Identity
from device_runner.failures import Failure
from device_runner.files import scratch_folder
from device_runner.registry import open_device
from device_runner.store import cache_root
from harness.base.request import WITH_WORKAROUNDS
from harness.judge.history import asv_process
from harness.judge.history.results import MACHINE_FILE, record_files, state_of_quirks
from harness.judge.history.runs import ASV_SOME_FAILED, machine_of, new_records, register
from harness.measure.records.record import Record

NOTHING_NEW = "No commit hashes selected"
"""asv's error if no commit is left to measure."""
JUST_DISCOVER = ["just-discover"]
"""What asv asks for when it only wants to know which benchmarks there are."""

Options = dict[str, Any]
Parameters = Mapping[str, str]


def install() -> None:
    """Make asv's `run`, `continuous`, which calls it, and `find` measure this way."""
    from asv.commands.find import Find
    from asv.commands.run import Run

    original = Run.run.__func__

    def run(cls: Any, /, conf: Any, **options: Any) -> int:
        return measure(lambda **chosen: original(cls, conf, **chosen), conf, options)

    Run.run = classmethod(run)
    original_find = Find.run.__func__

    def find(cls: Any, /, conf: Any, *words: Any, **options: Any) -> int:
        identity, machine = _file_under(Path(conf.results_dir), options.get("machine") or "")
        with _settings(conf, {**options, "dry_run": options.get("skip_save")}, identity, machine):
            return original_find(cls, conf, *words, **{**options, "machine": machine}) or 0

    Find.run = classmethod(find)


def measure(asv_run: Callable[..., int | None], conf: Any, options: Options) -> int:
    """Run asv on the device that the environment names, and return asv's exit code: 0 if the rig worked.

    Raises asv's `UserError` if the device cannot be opened, if results of another device have the machine's name, or
    for commits that do not exist. If no commit is left to measure, the rig worked.
    """
    from asv.util import ProcessError, UserError

    with _errors() as errors:
        try:
            code = _measure(asv_run, conf, options)
        except ProcessError as error:
            if "bad revision" not in str(error.stderr):
                raise
            commits = options.get("range_spec")
            raise UserError(f"there are no commits {commits} in {conf.repo}: ALL takes each") from None
    return 0 if NOTHING_NEW in errors else code


@contextlib.contextmanager
def _errors() -> Iterator[list[str]]:
    """Yield what asv prints as errors."""
    from asv.console import log

    errors, original = list[str](), log.error

    def error(message: str, *args: Any, **options: Any) -> None:
        errors.append(message)
        original(message, *args, **options)

    with mock.patch.object(log, "error", error):
        yield errors


def _measure(asv_run: Callable[..., int | None], conf: Any, options: Options) -> int:
    if asv_process.IDENTITY in os.environ or options.get("bench") == JUST_DISCOVER:
        return asv_run(**options) or 0
    identity, machine = _file_under(Path(conf.results_dir), options.get("machine") or "")
    with _settings(conf, options, identity, machine) as folder, _failures() as failures:
        before = {file: file.stat().st_size for file in record_files(folder)}
        code = asv_run(**{**options, "machine": machine, "record_samples": True}) or 0
        records = new_records(folder, before)
    findings_only = bool(failures) and all(is_finding(failure, records) for failure in failures)
    return 0 if code == ASV_SOME_FAILED and findings_only else code


def _file_under(results: Path, name: str) -> tuple[Identity, str]:
    """Return the device's identity, and the machine to file under: the identity's key, or a name that a person gave."""
    from asv.util import UserError

    try:
        with open_device(os.environ.get(asv_process.DEVICE) or "virtual", cache_root()) as device:
            identity = device.identity
        if name and _is_other(results / name / MACHINE_FILE, identity):
            raise UserError(f"{results / name} holds results of another device; leave out --machine")
        return identity, register(identity, name)
    except Failure as failure:
        raise UserError(f"{failure.message}; {failure.hint}") from failure


def _is_other(machine_file: Path, identity: Identity) -> bool:
    """Return whether asv's file of a machine is there and is not of this identity."""
    try:
        facts = json.loads(machine_file.read_bytes())
    except (OSError, ValueError):
        return machine_file.exists()
    return any(facts.get(key) != value for key, value in machine_of(identity).items() if key != "machine")


@contextlib.contextmanager
def _settings(conf: Any, options: Options, identity: Identity, machine: str) -> Iterator[Path]:
    """Tell the benchmarks, which are processes of asv's, the identity and the folder of records, which is returned.

    Records lie beside asv's results, or in a folder that goes away where asv keeps no results.
    """
    from asv import environment
    from asv.repo import get_repo

    environments = list(environment.get_environments(conf, options.get("env_spec")))
    installed, commit = environment.is_existing_only(environments), options.get("set_commit_hash")
    folder = Path(conf.results_dir).resolve() / machine
    with contextlib.ExitStack() as stack:
        if options.get("dry_run") or (installed and not commit):
            folder = stack.enter_context(scratch_folder())
        folder.mkdir(parents=True, exist_ok=True)
        chosen = {asv_process.IDENTITY: asv_process.identity_to(identity), asv_process.RECORDS: str(folder)}
        if installed:  # of an environment that it did not make asv says nothing to benchmarks
            chosen[asv_process.COMMIT] = get_repo(conf).get_hash_from_name(commit) if commit else "existing"
            chosen[asv_process.ENVIRONMENT] = environments[0].name
        stack.enter_context(mock.patch.dict(os.environ, chosen))
        yield folder


@contextlib.contextmanager
def _failures() -> Iterator[list[Parameters]]:
    """Yield the parameters of each benchmark that fails, as asv hears of it."""
    from asv.results import Results

    failures: list[Parameters] = []
    original = Results.add_result

    def add_result(self: Any, benchmark: Any, result: Any, *args: Any, **options: Any) -> Any:
        combinations = itertools.product(*benchmark["params"])
        for values, value in zip(combinations, result.result, strict=False):
            if value is None:
                texts = (text.strip("'") for text in values)
                failures.append(dict(zip(benchmark["param_names"], texts, strict=True)))
        return original(self, benchmark, result, *args, **options)

    with mock.patch.object(Results, "add_result", add_result):
        yield failures


def is_finding(failed: Parameters, records: Iterable[Record]) -> bool:
    """Return whether a benchmark failed because of what a record says about the compiler, and not because the rig did.

    Args:
        failed: The benchmark's parameters: `case` and `quirks`, or for machine code `model`, `path` and `precision`.
        records: Those of this run.
    """
    state = failed.get("quirks", WITH_WORKAROUNDS)
    case = failed.get("case")
    beginning = "-".join((*(failed.get(part, "") for part in ("model", "path", "precision")), ""))
    return any(
        (record.case == case if case else record.case.startswith(beginning))
        and state_of_quirks(as_shipped=record.as_shipped) == state
        and record.outcome.conclusive
        for record in records
    )
