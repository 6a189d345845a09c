"""The Python interface, without a device: results that were read, and the verdicts on them."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fake_device import a_plan, things
from fake_records import a_record, sessions

import adreno_bench as bench
from device_runner.device import Identity
from device_runner.failures import SetupMissing
from harness.base.failures import CompileFailure, UsageError
from harness.base.outcome import Outcome
from harness.base.suite import Suite
from harness.compile.artifacts.artifact import Artifact
from harness.judge.report.exports import CaseExport
from harness.measure.records.record import Record, RecordFile
from harness.measure.workbench import PlannedRequest, Request, RunResults
from harness.measure.workbench import no_device as no_device_identity
from harness.tools.python.results import Results, libraries_of

TEXTURE, OPENCL = "net-texture-float32-untuned", "net-opencl-float32-untuned"
WRONG = a_record("other-texture-float32-untuned", outcome=Outcome.COMPILE_ERROR, message="off <by> 7", max_abs_err=None)


def some_results() -> Results:
    texture = sessions(2.0, 3, case=TEXTURE, model="net", path="texture")
    return Results((*texture, a_record(OPENCL, wall_ms=[3.0] * 10, artifact="b"), WRONG))


def test_the_public_names_are_few_and_each_has_its_own_page_entry() -> None:
    assert len(bench.__all__) <= 14
    assert all(getattr(bench, name).__doc__ for name in bench.__all__)


def test_a_case_is_named_by_its_words_or_its_id() -> None:
    results = some_results()
    assert results["net", "opencl"].latency_ms == pytest.approx(3.0)
    assert results[TEXTURE] == results["texture", "net", "float32"]
    assert results[TEXTURE].latency_ms == pytest.approx(2.0, rel=0.05)
    assert [case.case for case in results] == [TEXTURE, OPENCL, WRONG.case]
    assert len(results) == 3
    assert results["other", "texture"].latency_ms is None, "what does not compile has no latency"
    with pytest.raises(KeyError, match=f"2 cases have net: add a word of {TEXTURE}, {OPENCL}"):
        results["net"]
    with pytest.raises(KeyError, match=f"no case has 'clml': known are {TEXTURE}, {OPENCL}"):
        results["net", "clml"]
    with pytest.raises(KeyError, match="no case has 'textur': did you mean 'texture'"):
        results["net", "textur"]
    with pytest.raises(KeyError, match=f"3 cases: add a word of {TEXTURE}"):
        results[()]
    for words in (0, slice(0, 2), ("net", 1), None):
        with pytest.raises(TypeError, match=r'write results\["net", "texture"\], or list\(results\)\[0\]'):
            results[words]  # type: ignore[index]
    with pytest.raises(KeyError, match=f"no case has other and opencl: known are {TEXTURE}"):
        results["other", "opencl"]


def test_in_asks_for_words_that_are_an_index_and_for_results() -> None:
    results = some_results()
    assert ("net", "texture") in results
    assert TEXTURE in results
    assert next(iter(results)) in results
    assert not any(words in results for words in ("net", "nothing", 0, None))


def test_an_error_names_a_dozen_cases_of_many() -> None:
    results = Results(tuple(a_record(f"net{number}-opencl-float32-untuned", artifact="a") for number in range(30)))
    with pytest.raises(KeyError, match=r"no case has 'vulkan': known are net0-.*, net11-[^,]* and 18 more"):
        results["vulkan"]


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "makes some"), ('{"benchmark": 3}\n', "not a record of schema 2"), ("a,b\n1,2\n", "2 such lines")],
)
def test_a_file_without_records_is_refused_with_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "other.jsonl").write_text(text)
    with pytest.raises(bench.Failure, match=r"there are no records in .*`adreno-bench run` makes some$") as refused:
        bench.load(tmp_path / "other.jsonl")
    assert says in str(refused.value)


def test_what_a_file_says_is_what_a_run_returned(tmp_path: Path) -> None:
    results = some_results()
    RecordFile(tmp_path / "records.jsonl").append(*results.records)
    loaded = bench.load(tmp_path / "records.jsonl")
    assert loaded.table() == results.table() == repr(loaded)
    assert list(loaded) == list(results)
    with pytest.raises(bench.Failure, match="there is no"):
        bench.load(tmp_path / "other.jsonl")


def test_a_notebook_shows_the_matrix_and_nothing_of_a_record_is_markup() -> None:
    html = some_results()._repr_html_()
    assert html
    assert html.count('<table class="matrix">') == 1
    assert 'href="' not in html, "there is nothing to link to"
    assert "off &lt;by&gt; 7" in html
    assert "<by>" not in html


def test_without_jinja2_a_notebook_shows_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert some_results()._repr_html_() is None


def test_arrow_has_a_typed_column_for_each_field_whatever_its_values() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="`make scale` installs it")
    table = pyarrow.table(some_results())
    assert table.column_names == list(CaseExport.model_fields)
    assert table.column("latency_ms").to_pylist()[1:] == [pytest.approx(3.0), None]
    empty = pyarrow.table(Results((WRONG,)))
    assert empty.schema == table.schema
    assert str(empty.schema.field("wall_ms").type).startswith("list<")


@pytest.mark.parametrize(
    ("module", "extra", "ask"),
    [("pandas", "pandas", Results.to_pandas), ("pyarrow", "records", Results.__arrow_c_stream__)],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, ask: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SetupMissing, match=rf"{module} is not installed: pip install 'adreno-bench\[{extra}\]'"):
        ask(some_results())


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_pandas_and_polars_get_a_row_for_each_case(module: str) -> None:
    for package in (module, "pyarrow"):
        pytest.importorskip(package, reason="`make scale` installs it")
    library, results = import_module(module), some_results()
    frame = results.to_pandas() if module == "pandas" else library.DataFrame(results)
    assert list(frame.columns) == list(CaseExport.model_fields)
    assert list(frame["case"]) == [TEXTURE, OPENCL, WRONG.case]
    assert list(frame["latency_ms"])[1] == pytest.approx(3.0)
    assert [len(samples) for samples in frame["wall_ms"]][1] == 10
    slower = frame[frame["latency_ms"] > 2.5] if module == "pandas" else frame.filter(library.col("latency_ms") > 2.5)
    assert list(slower["case"]) == [OPENCL], "a column of numbers is one, although one is not known"


@pytest.mark.parametrize(
    ("module", "take"), [("polars", "from_dataframe"), ("pandas", "DataFrame.from_arrow"), ("pyarrow", "table")]
)
def test_each_library_takes_results_by_its_own_function(module: str, take: str) -> None:
    for package in (module, "pyarrow"):
        pytest.importorskip(package, reason="`make scale` installs it")
    try:
        function = attrgetter(take)(import_module(module))
    except AttributeError:
        pytest.skip(f"this {module} has no {take}, which pandas 3 brought")
    assert function(some_results()).shape == (3, len(CaseExport.model_fields))


def test_two_results_are_compared_as_the_command_compares_them(tmp_path: Path) -> None:
    before = Results(tuple(sessions(2.0, 8, seed=1, case=TEXTURE, artifact="old")))
    now = Results(tuple(sessions(2.4, 8, seed=2, case=TEXTURE, artifact="new")))
    file = tmp_path / "before.jsonl"
    RecordFile(file).append(*before.records)
    for base in (before, file, str(file)):
        verdicts = bench.compare(base, now)
        assert [case.verdict.value for case in verdicts.export.cases] == ["slower"]
    assert TEXTURE in repr(verdicts)
    assert "<td>slower" in verdicts._repr_html_()


def test_a_model_is_not_compared_with_records(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    RecordFile(file).append(*some_results().records)
    for base, head, other in (("net.onnx", file, str(file)), (some_results(), "net.onnx", "the other side")):
        with pytest.raises(bench.Failure, match="two models, or `run` the model") as refused:
            bench.compare(base, head)
        assert refused.value.message == f"net.onnx is a model, and {other} holds records"


def test_a_side_that_is_not_there_is_named_and_not_the_other_one(tmp_path: Path) -> None:
    for base, head in ((some_results(), "nothere.jsonl"), ("net.onnx", "nothere.jsonl"), ("nothere.jsonl", "net.onnx")):
        with pytest.raises(bench.Failure, match=r"there is no .*nothere\.jsonl"):
            bench.compare(base, head)
    with pytest.raises(bench.Failure, match="a side of a comparison is not 17: give results, a records file"):
        bench.compare(17, some_results())  # type: ignore[arg-type]


def test_what_there_is_not_is_refused_before_anything_is_opened(no_device: None) -> None:
    with pytest.raises(bench.Failure, match="there is no precision 'float8': did you mean 'float32'"):
        bench.run("net.onnx", precisions="float8")
    with pytest.raises(bench.Failure, match="there is no tuning 'fast': known are untuned, tuned"):
        bench.run("net.onnx", tunings="fast")
    with pytest.raises(bench.Failure, match=r"not \['a.onnx', 'b.onnx'\]: write run\(\"a.onnx\", \"b.onnx\"\)"):
        bench.run(["a.onnx", "b.onnx"])  # type: ignore[arg-type]
    with pytest.raises(bench.Failure, match="there is no path 'textures'"):
        bench.run("tiny", paths=["textures"])
    with pytest.raises(bench.Failure, match=r"net\.onnx does not exist"):
        bench.run("net.onnx")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"abi": "nonsense"}, "there is no processor 'nonsense': use one of arm64-v8a, aarch64"),
        ({"abi": "aarch64", "device": "virtual"}, "abi='aarch64' builds for no device, and not for 'virtual'"),
        ({"device": ["virtual"]}, r"a build is for one device, not \['virtual'\]"),
        ({"paths": "vulkan"}, "there is no path 'vulkan'"),
        ({"precisions": "int4"}, "there is no precision 'int4'"),
        ({"cases": "zzz"}, "no case matches 'zzz'"),
    ],
)
def test_a_build_is_refused_before_anything_is_compiled(
    no_device: None, monkeypatch: pytest.MonkeyPatch, words: Any, says: str
) -> None:
    monkeypatch.setattr("harness.tools.python.interface.open_to_build", None)
    with pytest.raises(UsageError, match=says):
        bench.build("tiny", progress=False, **words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"path": "textur"}, "there is no path 'textur': did you mean 'texture'?"),
        ({"path": "cpu"}, "there is no path 'cpu': known are clml, opencl, texture"),
        ({"path": ["texture"]}, 'path is a word, not a list: write path="texture"'),
        ({"abi": "arm64"}, "there is no processor 'arm64': use one of arm64-v8a, aarch64"),
        ({"abi": None}, 'abi is a word, not a NoneType: write abi="aarch64"'),
        ({"precision": "half"}, "there is no precision 'half': known are float32, float16, float16_acc32"),
        ({"image_side": 0}, "image_side is a number of pixels, not 0: write image_side=16384"),
    ],
)
def test_a_module_is_not_looked_at_for_words_that_mean_nothing(words: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        bench.compile(None, **{"path": "texture", **words})


def test_a_build_is_for_the_processor_and_for_no_device_by_default(
    no_device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Request, str, list[Identity]]] = []

    @contextmanager
    def open_to_build(request: Request, device: str, _: Any, alike: list[Identity]) -> Iterator[PlannedRequest]:
        seen.append((request, device, alike))
        yield PlannedRequest(no_device_identity(), [], Mock(build=lambda jobs: {}))

    monkeypatch.setattr("harness.tools.python.interface.open_to_build", open_to_build)
    for words in ({}, {"abi": "arm64-v8a", "as_shipped": True}, {"device": "virtual"}):
        assert bench.build("tiny", paths="texture", progress=False, **words) == []
    assert [(device, [identity.abi for identity in alike]) for _, device, alike in seen] == [
        ("none", []),
        ("none", ["arm64-v8a"]),
        ("virtual", []),
    ]
    assert [request.quirks.as_shipped for request, *_ in seen] == [False, True, False]


def test_a_library_names_its_file_or_why_there_is_none(tmp_path: Path) -> None:
    plan, made = a_plan(), things(tmp_path)["c-tiny"]
    assert isinstance(made, Artifact)
    failed = CompileFailure("TVM refused it")
    for result, file, outcome, message in (
        (made, made.loadable.library, "ok", ""),
        (failed, None, "compile-error", "TVM refused it"),
    ):
        builder: Any = Mock(build=lambda _, result=result: {plan.compile.key: result})
        (library,) = libraries_of(PlannedRequest(no_device_identity(), [plan], builder))
        assert (library.case, library.file, library.outcome, library.message) == (plan.case.id, file, outcome, message)


def test_ctrl_c_ends_the_run_alone(no_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> list[str]:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("harness.tools.python.interface.select", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            bench.run("tiny", progress=False)
        assert signal.getsignal(signal.SIGINT) is before


def test_one_word_is_as_good_as_a_list_of_one(no_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Request] = []

    def run_request(request: Request, *_: Any, **__: Any) -> RunResults:
        seen.append(request)
        return RunResults(())

    monkeypatch.setattr("harness.tools.python.interface.run_request", run_request)
    bench.run("tiny", paths="texture", progress=False)
    bench.run("tiny", paths=["texture"], progress=False)
    assert seen[0] == seen[1]
    assert [case.id for case in seen[0].cases] == ["tiny-texture-float32-untuned"]
    assert isinstance(seen[0].suite, Suite)


def test_the_devices_of_this_host_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = bench.DeviceEntry("virtual", "virtual", "ready", {})
    monkeypatch.setattr("harness.tools.python.interface.list_devices", lambda _: [entry])
    assert bench.devices() == [entry]


def test_records_of_earlier_runs_are_not_new() -> None:
    earlier, later = a_record(TEXTURE), a_record(OPENCL)
    results = Results((earlier, later), settled=(earlier,))
    new: list[Record] = results.new
    assert new == [later]


def test_a_model_is_not_compared_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bench.Failure, match="both sides are the same model: name two models"):
        bench.compare("net.onnx", "net.onnx")


@pytest.mark.parametrize(
    ("values", "fields", "said"),
    [
        (["net.onnx"], {}, r'takes its fields by name: write OnnxModel\(onnx="net.onnx"\)'),
        ([], {"onnx": "net.onnx", "shape": {"x": 1}}, "has no field 'shape': did you mean 'shapes'?"),
        ([], {}, "needs a file: write"),
        ([], {"onnx": "net.onnx", "inputs": {"x": "normal(0)"}}, r": inputs: 'normal\(0\)' has 1 numbers"),
    ],
)
def test_a_mistake_in_a_model_is_one_line(values: list[Any], fields: dict[str, Any], said: str) -> None:
    with pytest.raises(bench.Failure, match=f"^OnnxModel ?{said}") as caught:
        bench.OnnxModel(*values, **fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [bench.run, bench.build])
def test_without_models_and_a_suite_python_is_told_of_no_option(
    function: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        bench.Failure, match=r'no suite file adreno-bench.toml: name a network, such as run\("net.onnx"\)'
    ):
        function()
