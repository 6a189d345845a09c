"""What Python code calls, and `adreno_bench` is its name outside.

import adreno_bench as bench

results = bench.run("net.onnx", paths=["texture"])
results["net", "texture"].latency_ms
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias, TypeVar

from device_runner.device import DeviceEntry
from device_runner.interrupt import end_at, interrupt, interruption
from device_runner.names import load as load_place
from device_runner.names import suggestion
from device_runner.registry import list_devices
from device_runner.selection import select
from device_runner.store import cache_root
from harness.base.case import Axes, Precision, Tuning
from harness.base.failures import UsageError
from harness.base.model import SUFFIXES, OnnxModel, models_given
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.base.tool import place_of
from harness.cli.record_filter import MAKES_RECORDS, load_sides, read_builds
from harness.compile.artifacts.planner import host_triple
from harness.compile.paths.base import ImageLimits
from harness.judge.report.screen import Screen
from harness.judge.sides import Sides
from harness.judge.stats.pair import Rules
from harness.measure.progress import Progress, SilentProgress
from harness.measure.records.record import NO_DEVICE, RecordFile
from harness.measure.workbench import Request, no_device, open_to_build, run_request
from harness.tools.python.modules import CompiledModule, compile_module
from harness.tools.python.results import Library, Results, Verdicts, libraries_of
from harness.tools.shared.comparison_view import ComparisonView, view_sides


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the body alone, with KeyboardInterrupt.

    Outside the main thread, and inside `end_at`, it changes nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is interrupt:
        yield
        return
    try:
        with end_at(signal.SIGINT):
            yield
    except SystemExit:
        if not interruption():
            raise
        with end_at():  # forgets the signal: the process goes on
            pass
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


Place: TypeAlias = "str | PathLike[str]"
"""A file, a folder, a glob or a URL."""
Words: TypeAlias = "str | Sequence[str]"
"""One word or several."""
Choice = TypeVar("Choice", Precision, Tuning)


def run(
    *models: Place | OnnxModel,
    paths: Words = (),
    precisions: Words = (),
    tunings: Words = (),
    cases: Words = (),
    device: Words = "virtual",
    suite: Place = "adreno-bench.toml",
    records: Place = "records.jsonl",
    quick: bool = False,
    as_shipped: bool = False,
    progress: bool = True,
) -> Results:
    """Compile, judge and time models, as `adreno-bench run` does.

    Ctrl-C ends it with KeyboardInterrupt; finished cases are in `records`.

    Args:
        models: Files, networks of the zoo, or `OnnxModel` for shapes and inputs; without any, those of the suite.
        paths: `clml`, `texture`, `opencl`; by default those of the suite, or all three.
        precisions: `float32`, `float16`, `float16_acc32`.
        tunings: `untuned`, `tuned`.
        cases: Globs of case ids.
        device: `virtual`, `local`, an adb serial, `all`, or labels such as `soc=SM8650`.
        suite: Suite file; with models it may be missing.
        records: File to append to, a line for each case.
        quick: Take three samples per case on an emulated device.
        as_shipped: Leave TVM's known defects in.
        progress: Print progress on standard error.

    Raises:
        Failure: As the command prints it: a wrong option, a missing file or package, a lost device.
    """
    quirks = QuirkPolicy(as_shipped)
    request = _request(models, paths, precisions, tunings, cases, suite, quirks, quick=quick)
    file = RecordFile(Path(records))
    file.require_writable()
    with _progress(progress) as watcher:
        names = select(_words(device), request.cache, watcher.say)
        done = run_request(request, names, file, watcher)
    return Results(done.records, done.settled, done.lost)


def build(
    *models: Place | OnnxModel,
    paths: Words = (),
    precisions: Words = (),
    tunings: Words = (),
    cases: Words = (),
    device: str = NO_DEVICE,
    abi: str = "",
    suite: Place = "adreno-bench.toml",
    as_shipped: bool = False,
    progress: bool = True,
) -> list[Library]:
    """Compile models, with workarounds for TVM's known defects, as `adreno-bench build` does.

    Args:
        models: As in `run`; so are `paths`, `precisions`, `tunings`, `cases`, `suite` and `as_shipped`.
        paths: See `models`.
        precisions: See `models`.
        tunings: See `models`.
        cases: See `models`.
        device: Device to compile for; `none` takes the limits of every Adreno and the processor of this host.
        abi: Processor to compile for in place of a device's: `arm64-v8a` for phones, `aarch64` for boards.
        suite: See `models`.
        as_shipped: See `models`.
        progress: Print progress on standard error.

    Raises:
        Failure: As the command prints it. A case that does not compile raises nothing: its `file` is None.
    """
    if not isinstance(device, str):
        raise UsageError(f"a build is for one device, not {device!r:.60}", hint='write device="virtual"')
    if abi and device != NO_DEVICE:
        raise UsageError(f"abi={abi!r} builds for no device, and not for {device!r}", hint="leave out one of them")
    alike = [no_device(abi)] if abi else []
    request = _request(models, paths, precisions, tunings, cases, suite, QuirkPolicy(as_shipped))
    with _progress(progress) as watcher, open_to_build(request, device, watcher, alike) as bench:
        return list(libraries_of(bench))


def compile(
    module: object,
    path: str,
    *,
    abi: str = "",
    precision: str = "float32",
    image_side: int = ImageLimits.image2d_max_width,
    as_shipped: bool = False,
) -> CompiledModule:
    """Compile a Relax module as `relax.build` does, with workarounds for TVM's known defects.

    The module has one function to call, which `main` is another name of. What it calls becomes part of it, and the
    module itself stays as it is. Only `build` has the ONNX file: it prepares the network, and refuses what TVM's
    importer misreads.

    It compiles in this process, one module at a time: a crash of TVM ends the process. `build` compiles in others.

    Args:
        module: A `tvm.IRModule` of fixed shapes, as `tvm.relax.frontend` makes it. Weights that are inputs stay inputs.
        path: `clml`, `texture` or `opencl`, which stand for TVM's targets `qcom/adreno-opencl-clml` and so on.
        abi: Processor to compile for: `arm64-v8a` for phones, `aarch64` for boards, by default that of this host.
        precision: `float32` leaves number formats as they are; `float16` and `float16_acc32` convert the module.
        image_side: Most pixels along a side of the device's images: 16384 on Adreno since the 5xx, 8192 on PoCL.
        as_shipped: Leave TVM's known defects in.

    Raises:
        Failure: A wrong option, another kind of module, or a module that TVM does not compile.
    """
    words = (("path", path, "texture"), ("abi", abi, "aarch64"), ("precision", precision, "float16"))
    for name, word, example in words:
        if not isinstance(word, str):
            raise UsageError(f"{name} is a word, not a {type(word).__name__}", hint=f'write {name}="{example}"')
    (chosen,) = _choices(Precision, precision)
    if not isinstance(image_side, int) or image_side < 1:
        raise UsageError(f"image_side is a number of pixels, not {image_side!r:.60}", hint="write image_side=16384")
    limits, triple = ImageLimits(image_side, image_side), host_triple(no_device(abi))
    return compile_module(module, path, limits, triple, chosen, as_shipped=as_shipped)


def load(place: Place) -> Results:
    """Read the sessions of the latest build of each case: a file, a folder, a glob or a URL of records.

    Raises:
        Failure: There are no records.
    """
    records = tuple(record for build in read_builds(fspath(place), lambda _: True) for record in build)
    if not records:
        raise UsageError(f"there are no records in {fspath(place)}", hint=MAKES_RECORDS)
    return Results(records)


def compare(
    base: Results | Place | OnnxModel,
    head: Results | Place | OnnxModel,
    *,
    paths: Words = (),
    precisions: Words = (),
    tunings: Words = (),
    device: str = "virtual",
    minutes: float = 20.0,
    relevant: float = 3.0,
    progress: bool = True,
) -> Verdicts:
    """Compare two results, or two models.

    Compares results, records files and folders of baselines as they are. Measures two models in turns on one device
    until the question is decided or the time is up; `answer` has the sentence.

    Args:
        base: Results, a place of records, a folder of baselines, or a model's file.
        head: The same choices, for the side to judge.
        paths: For models, as in `run`; so are `precisions`, `tunings`, `device` and `progress`.
        precisions: See `paths`.
        tunings: See `paths`.
        device: See `paths`; exactly one.
        minutes: Time for sessions in turns, in minutes.
        relevant: Relevant change of the latency, in percent.
        progress: See `paths`.

    Raises:
        Failure: As the command prints it.
    """
    rules = Rules(relevant / 100)
    if not (_is_model(base) or _is_model(head)):
        return Verdicts.of(view_sides(_sides(base), _sides(head), rules))
    if not (_is_model(base) and _is_model(head)):
        model, other = (base, head) if _is_model(base) else (head, base)
        _sides(other)  # which says that there is none, if so
        message = f"{_title(model)} is a model, and {_title(other)} holds records"
        raise UsageError(message, hint="name two models, or `run` the model and compare its results")
    if base == head:
        raise UsageError("both sides are the same model", hint="name two models")
    sides = [_request([side], paths, precisions, tunings, (), "adreno-bench.toml") for side in (base, head)]  # type: ignore[list-item]
    measure: Callable[..., ComparisonView] = load_place(place_of("side_by_side"))
    with _progress(progress) as watcher:
        name = sides[0].one_device(device, watcher)
        return Verdicts.of(measure(*sides, name, rules, watcher, minutes=minutes))


def devices() -> list[DeviceEntry]:
    """Return the virtual phone, the OpenCL device of this host, and every phone."""
    return list_devices(cache_root())


@contextmanager
def _progress(visible: bool) -> Iterator[Progress]:
    """Yield what hears of progress, while Ctrl-C ends the body alone."""
    with interruptible():
        if not visible:
            yield SilentProgress()
            return
        with Screen() as screen:
            yield screen


def _request(
    models: Sequence[Place | OnnxModel],
    paths: Words,
    precisions: Words,
    tunings: Words,
    cases: Words,
    suite: Place,
    quirks: QuirkPolicy = WORKED_AROUND,
    *,
    quick: bool = False,
) -> Request:
    chosen = [_model(model) for model in models]
    if not chosen and not Path(suite).exists():
        hint = 'name a network, such as run("net.onnx"), or let `adreno-bench init` write one'
        raise UsageError(f"there is no suite file {fspath(suite)}", hint=hint)
    axes = Axes(_words(paths), _choices(Precision, precisions), _choices(Tuning, tunings))
    return Request.read(Path(suite), list(_words(cases)) or None, quirks, models=chosen, axes=axes, quick=quick)


def _model(model: Place | OnnxModel) -> str | OnnxModel:
    if isinstance(model, OnnxModel):
        return model
    if isinstance(model, (str, PathLike)):
        return models_given([fspath(model)], (), ())[0]
    raise UsageError(f"a model is a name or a file, not {model!r:.60}", hint='write run("a.onnx", "b.onnx")')


def _choices(kind: type[Choice], words: Words) -> tuple[Choice, ...]:
    names = [choice.value for choice in kind if not choice.value.startswith(Tuning.SCHEDULED)]  # the suite's own
    for word in _words(words):
        if word not in names:
            raise UsageError(f"there is no {kind.__name__.lower()} {word!r}", hint=suggestion(word, names))
    return tuple(map(kind, _words(words)))


def _words(words: Words) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _is_model(side: Results | Place | OnnxModel) -> bool:
    if not isinstance(side, (Results, str, PathLike, OnnxModel)):
        hint = "give results, a records file, a folder of baselines, or two models"
        raise UsageError(f"a side of a comparison is not {side!r:.60}", hint=hint)
    return isinstance(side, OnnxModel) or (not isinstance(side, Results) and fspath(side).endswith(SUFFIXES))


def _sides(side: Results | Place | OnnxModel) -> Sides:
    return side.sides if isinstance(side, Results) else load_sides(fspath(side), lambda _: True)  # type: ignore[arg-type]


def _title(side: Results | Place | OnnxModel) -> str:
    if isinstance(side, Results):
        return "the other side"
    return str(side.onnx if isinstance(side, OnnxModel) else fspath(side))
