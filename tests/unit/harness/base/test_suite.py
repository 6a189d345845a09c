"""Suite files: what they make, and how they complain."""

from pathlib import Path

import pytest
from places import ROOT

from device_runner.device import ThermalLimits
from harness.base.failures import UsageError
from harness.base.model import OnnxModel, model_name, models_given
from harness.base.suite import load_suite, suite_of

SCORED = 'paths = ["opencl"]\nmodels = [{{ onnx = "x.onnx", labelled = "l.npz", score = "{}" }}]\n'
PICTURES = 'paths = ["opencl"]\nmodels = [{{ onnx = "x.onnx", labelled = {{ folder = "val", resize = 9, {} }} }}]\n'
GOOD = 'models = ["tiny"]\npaths = ["opencl"]\n'


def write(folder: Path, text: str) -> Path:
    file = folder / "suite.toml"
    file.write_text(text)
    return file


def test_the_default_suite_is_every_model_on_every_path() -> None:
    cases = load_suite(ROOT / "adreno-bench.toml").cases
    assert {case.model for case in cases} >= {"mobilenet_v1", "resnet18", "squeezenet1_1"}
    assert {case.path for case in cases} >= {"opencl", "texture"}
    assert len({case.id for case in cases}) == len(cases)


def test_an_onnx_file_is_one_line_relative_to_the_suite(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, 'models = ["nets/My Net-2.onnx"]\npaths = ["opencl"]\n'))
    (model,) = suite.models
    assert isinstance(model, OnnxModel)
    assert model.onnx == tmp_path / "nets/My Net-2.onnx"
    assert [case.id for case in suite.cases] == ["my_net_2-opencl-float32-untuned"]


def test_an_onnx_file_may_have_a_name_and_shapes(tmp_path: Path) -> None:
    text = 'models = [{ onnx = "a.onnx", name = "mine", shapes = { x = [1, 3] } }]\npaths = ["opencl"]\n'
    (model,) = load_suite(write(tmp_path, text)).models
    assert model_name(model) == "mine"
    assert isinstance(model, OnnxModel)
    assert model.shapes == {"x": [1, 3]}


def test_a_device_may_have_limits_of_its_own(tmp_path: Path) -> None:
    text = GOOD + "[steady]\ngpu_c = 50\nwait_s = 30\n[steady.devices.'127.0.0.1:5555']\ngpu_c = 60\n"
    steady = load_suite(write(tmp_path, text)).steady
    assert steady.thermal_limits("127.0.0.1:5555") == ThermalLimits(gpu_c=60, wait_s=30)
    assert steady.thermal_limits("another") == ThermalLimits(gpu_c=50, wait_s=30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "[steady]\nbatery_c = 3\n", ":4: unknown key 'steady.batery_c': did you mean 'battery_c'?"),
        (GOOD + "[steady.devices.R5]\ngpu = 3\n", ":4: unknown key 'steady.devices.R5.gpu': did you mean 'gpu_c'?"),
        (
            GOOD + "[tolerance]\nfloat32 = 1e-9\n",
            ": tolerance: float32 = 1e-09 is not between 1.2e-07",
        ),
        (GOOD + "[tolerance]\nfloat16 = 2.0\n", "float16 = 2 is not between 0.00098, its resolution, and 1"),
        (GOOD + "bugdet_s = 3\n", ":3: unknown key 'bugdet_s': did you mean 'budget_s'?"),
        (GOOD + "\n[limits]\nbuild_s = 1\nrun = 3\n", ":6: unknown key 'limits.run': did you mean 'run_s'?"),
        (GOOD + "budget_s = -1\n", ":3: budget_s: Input should be greater than 0 (got -1)"),
        (GOOD + 'precisions = ["f32"]\n', ":3: precisions: Input should be 'float32'"),
        ('models = [{ onnx = "x.onnx", shape = {} }]\npaths = ["opencl"]\n', "unknown key 'models.shape'"),
        (PICTURES.format("crops = 8"), ":2: unknown key 'models.labelled.crops': did you mean 'crop'?"),
        (PICTURES.format("crop = 20"), ":2: models.labelled: crop 20 is larger than resize 9 (got"),
        (SCORED.format("metrics"), """:2: models: 'metrics' names no function: write score = "module:function" (got"""),
        (
            'paths = ["opencl"]\nmodels = [{ onnx = "x.onnx", score = "a:b" }]',
            "score needs labelled data: give labelled",
        ),
        (PICTURES.format("most = 1"), ":2: the key 'models.labelled.crop' is missing: docs/reference/settings.md"),
        (
            'models = [{ onnx = "x.onnx", shapes = { "in.1" = [1.5] } }]\npaths = ["opencl"]\n',
            "models.shapes.in.1: In",
        ),
        ('models = []\npaths = ["opencl"]\n', ":1: the key 'models' is empty: for example models = ["),
        ('models = ["tiny", "tiny"]\npaths = ["opencl"]\n', "the model name 'tiny' stands twice"),
        ('models = "tiny"\npaths = ["opencl"]\n', ":1: models: Input should be a valid list"),
        ('paths = ["opencl"]\n', "the key 'models' is missing: for example models = ["),
        ('models = ["tiny"]\n', "the key 'paths' is missing: for example paths = ["),
        ("models = [", "the file must be TOML"),
        (GOOD + '[[tolerances]]\ncase = "*"\nrelative = 0.1\n', ":3: the key 'tolerances.reason' is missing"),
        (GOOD + '[[tolerances]]\ncase = "*"\nrelative = 0.1\nreason = " "\n', ":6: tolerances.reason: String should"),
        (GOOD + '[[tolerances]]\ncase = "*"\nrelative = 2\nreason = "x"\n', ":5: tolerances.relative: Input should"),
        (
            GOOD + '[[tolerances]]\ncase = "tny-*"\nrelative = 0.1\nreason = "x"\n',
            ":3: tolerances: no case matches 'tny-*'",
        ),
        (GOOD + '[[tolerances]]\ncases = "*"\n', "unknown key 'tolerances.cases': did you mean 'case'?"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_suite(write(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_justified_tolerance_comes_before_those_of_the_precision_and_the_last_one_counts(tmp_path: Path) -> None:
    text = """models = ["tiny", "resnet18"]
paths = ["opencl", "texture"]
[tolerance]
float32 = 0.002
[[tolerances]]
case = "tiny-*"
relative = 0.1
reason = "one"
[[tolerances]]
case = "*-texture-*"
relative = 0.2
reason = "two"
"""
    suite = load_suite(write(tmp_path, text))
    tolerances = {case.id.removesuffix("-float32-untuned"): suite.relative_tolerance(case) for case in suite.cases}
    assert tolerances == {"tiny-opencl": 0.1, "tiny-texture": 0.2, "resnet18-opencl": 0.002, "resnet18-texture": 0.2}
    reasons = [justified.reason if (justified := suite.justified(case)) else None for case in suite.cases]
    assert reasons == ["one", "two", None, "two"]


def test_a_missing_suite_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no suite file .*: `adreno-bench init` writes one"):
        load_suite(tmp_path / "none.toml")


def test_a_suite_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"cannot read .*: it is not text in UTF-8: name a TOML file"):
        load_suite(file)


def test_models_of_the_command_line_stand_in_place_of_the_suites_own(tmp_path: Path) -> None:
    file = write(tmp_path, 'models = ["tiny"]\npaths = ["texture"]\nbudget_s = 3\n')
    given = models_given(["net.onnx", "resnet18"], ["batch=2", "input=1x3x8x8"], ["tokens=integers(0,9)"])
    suite = suite_of(file, given)
    assert [case.id for case in suite.cases] == ["net-texture-float32-untuned", "resnet18-texture-float32-untuned"]
    assert suite.budget_s == 3
    assert suite.models[0] == OnnxModel(
        onnx=Path("net.onnx"), shapes={"batch": 2, "input": [1, 3, 8, 8]}, inputs={"tokens": "integers(0,9)"}
    )
    assert len(suite_of(tmp_path / "none.toml", given).cases) == 2 * 3


def test_a_model_of_the_suite_is_taken_by_its_name_with_what_the_suite_says_of_it(tmp_path: Path) -> None:
    file = write(
        tmp_path, 'models = ["tiny", { onnx = "net.onnx", name = "mine", shapes = { n = 2 } }]\npaths = ["clml"]\n'
    )
    suite = suite_of(file, models_given(["mine"], [], []))
    assert suite.models == [OnnxModel(onnx=tmp_path / "net.onnx", name="mine", shapes={"n": 2})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((["resnet18"], ["batch=1"], []), "--shape is for a file of your own"),
        ((["a.onnx"], ["1x3"], []), "--shape '1x3' is not a shape: write input=1x3x224x224"),
        ((["a.onnx"], ["input=1x-3"], []), "is not a shape"),
        ((["a.onnx"], [], ["a.npz", "b.npz"]), "--input 'a.npz' does not go with another"),
        ((["a.onnx"], [], ["x=gauss(0,1)"]), "'gauss(0,1)' is not a distribution"),
    ],
)
def test_a_command_line_that_cannot_be_meant(words: tuple[list[str], list[str], list[str]], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        models_given(*words)
    assert said in str(caught.value)


def test_a_model_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--model: .*'net' stands twice.*: name each model once"):
        suite_of(tmp_path / "none.toml", models_given(["net.onnx", "net.onnx"], [], []))


def test_distributions_of_inputs_are_checked_when_the_suite_is_read(tmp_path: Path) -> None:
    text = 'models = [{{ onnx = "a.onnx", inputs = {{ tokens = "{}" }} }}]\npaths = ["opencl"]\n'
    (model,) = load_suite(write(tmp_path, text.format("integers(0, 9)"))).models
    assert isinstance(model, OnnxModel)
    assert str(model.drawn["tokens"]) == "integers(0, 9)"
    with pytest.raises(UsageError, match="is not a distribution"):
        load_suite(write(tmp_path, text.format("dice(6)")))


def test_a_suite_may_begin_with_the_mark_of_editors_on_windows(tmp_path: Path) -> None:
    file = tmp_path / "adreno-bench.toml"
    file.write_bytes(b'\xef\xbb\xbfmodels = ["tiny"]\r\npaths = ["opencl"]\r\n')
    assert load_suite(file).paths == ["opencl"]
