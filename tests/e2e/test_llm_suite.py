"""Language models as cases of a suite, through the commands."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import command
import pytest
from mlc_library import write_mlc
from waiting import LONG_S

from device_runner.runtimes.opencl import DEVICE_VARIABLE, packaged_driver
from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE
from harness.base.outcome import Outcome
from harness.compile.artifacts.pool import load_artifact
from harness.measure.records.record import RecordFile
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.part import LlmPart
from harness.tools.llm.quirks import QUIRKS
from harness.tools.shared.kernels.profile import read_profiles

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]


SUITE = """
models = [{ llm = "llama_tiny", tests = ["tg@d0", "chunks"], chunk = 64 }]
paths = ["opencl", "texture"]
budget_s = 0.5
"""


@pytest.mark.long
def test_a_suite_gates_language_models(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(SUITE)

    def call(*words: str) -> tuple[int, str]:
        code, out, err = command.bench(tmp_path, cache, *words)
        return code, out + err

    code, text = call("run", "--path", "opencl")
    assert code == 0, text
    decode, chunks = RecordFile(tmp_path / "records.jsonl").load().records
    step, prompt = decode.part(LlmPart), chunks.part(LlmPart)
    assert step
    assert prompt
    assert step.tokens_per_s == pytest.approx(1e3 / median(decode.wall_ms))
    assert decode.device_ms
    assert len(prompt.invariants) == 4
    assert (prompt.chunk, prompt.pinned, prompt.trial_tokens) == (64, True, 2)
    assert (chunks.settings, decode.settings) == ({"chunk": 64}, {})
    artifact = load_artifact(cache, decode.artifact)
    assert artifact
    launches = artifact.compiled.launches or {}
    assert launches["batch_prefill_ragged_kv_kernel"]["local_bytes"] == 12_480
    assert {launch["per_inference"] for launch in launches.values()} == {None}
    assert call("bless", "--records", "records.jsonl")[0] == 0
    code, text = call("gate", "--case", "*_tg_d0-*", "--minutes", "0.1")
    assert (code, "unsupported: TVM's paged cache" in text) == (0, True), text
    code, text = call("run", "--case", "*_chunks-opencl-*", "--as-shipped", "--quick", "--records", "shipped.jsonl")
    assert code == 3, text
    assert "prefill of 26 tokens at 26: layer 0 is off" in text
    code, out, _ = command.bench(tmp_path, cache, "profile", "--case", "*_tg_d0-opencl-*", "--json")
    assert code == 0
    assert "batch_decode_paged_kv" in {operator["function"] for operator in json.loads(out)["operators"]}


WIDE = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "head_dim": 192,
    "intermediate_size": 64,
    "vocab_size": 64,
}


@pytest.mark.long
def test_heads_that_do_not_fit_the_local_memory_are_unsupported(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "wide.json").write_text(json.dumps(WIDE))
    code, out, err = command.bench(tmp_path, cache, "llm", "run", "--model", "wide.json", "--test", "pp32", "--quick")
    assert code == 5, out + err
    needs, has = "batch_prefill_ragged_kv_kernel needs 37056 bytes of local memory in a work-group", "has 32768"
    (record,) = RecordFile(tmp_path / "records.jsonl").load().records
    assert record.outcome is Outcome.UNSUPPORTED
    assert needs in record.message
    assert record.message.endswith(has)


FOREIGN = """
models = [{ mlc = "model.so", weights = "weights", tests = ["pp32", "tg@d32"] }]
paths = ["opencl", "texture"]
budget_s = 0.5
"""
CONFIG = LlmConfig(2, 64, 4, 2, 32, 96, 128)


def change_settings(folder: Path, **settings: object) -> None:
    file = folder / "weights" / "mlc-chat-config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


@pytest.mark.long
@pytest.mark.parametrize("judge", ["numpy float64", "invariants"])
def test_a_library_with_mlc_llms_interface_is_judged(judge: str, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(FOREIGN)
    write_mlc(tmp_path, CONFIG, "q4f32_1", QUIRKS[:1])
    if judge == "invariants":
        change_settings(tmp_path, model_type="rwkv")
    code, out, err = command.bench(tmp_path, cache, "run")
    assert code == 0, out + err
    for record in RecordFile(tmp_path / "records.jsonl").load().records:
        part = record.part(LlmPart)
        assert part
        if record.path == "texture":
            assert "mlc-llm compiled it" in record.message
            continue
        assert part.tokens_per_s == pytest.approx(1e3 * part.tokens / median(record.wall_ms))
        assert record.device_ms
        assert record.judge == judge
        if judge == "invariants":
            assert part.error is None
            assert max(part.invariants.values()) < 1e-5
        else:
            assert part.error is not None
            assert 0 < part.error < 1e-5


@pytest.mark.long
def test_a_wrong_one_and_weights_of_another_are_named(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(FOREIGN)
    write_mlc(tmp_path, CONFIG, "q4f32_1", [])
    words = ("run", "--case", "*_pp32-opencl-*", "--quick")
    file = tmp_path / "weights" / "mlc-chat-config.json"
    settings = file.read_text()
    file.write_text(settings.replace('"position_embedding_base": 10000', '"position_embedding_base": 20000'))
    code, out, err = command.bench(tmp_path, cache, *words)  # each answer agrees with the others
    assert (code, "prefill of 32 tokens at 0" in out) == (3, True), out + err
    change_settings(tmp_path, model_type="rwkv")
    code, out, err = command.bench(tmp_path, cache, *words)
    assert (code, "invariant `in chunks = at once`" in out) == (3, True), out + err
    file = tmp_path / "weights" / "ndarray-cache.json"
    file.write_text(file.read_text().replace("input_layernorm", "input_norm"))
    code, out, err = command.bench(tmp_path, cache, *words)
    assert code == 3, out + err
    assert "has no such weight" in out


HALF = """
models = [{ llm = "llama_tiny", format = ["q4f16_0", "q4f16_1"], tests = ["tg@d0"] }]
paths = ["opencl"]
budget_s = 0.5
"""


@pytest.mark.long
@pytest.mark.skipif(packaged_driver() is None, reason="no OpenCL with cl_khr_fp16: `make fp16` installs one")
def test_4_bits_are_right_in_half_precision(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(HALF)
    code, out, err = command.bench(tmp_path, cache, "run", "--device", "local", **{DEVICE_VARIABLE: "Intel"})
    assert code == 0, out + err
    for record in RecordFile(tmp_path / "records.jsonl").load().records:
        part = record.part(LlmPart)
        assert part
        assert part.error
        assert 2.0**-13 < part.error < 2.0**-4  # half precision, and not more than it loses


HISTORY = (
    "from pathlib import Path; from harness.judge.history.asv_process import record_of, suite; "
    "record_of(suite(Path('adreno-bench.toml')), '{case}', 'workarounds', Path('.'))"
)
"""What one of asv's processes does."""


@pytest.mark.long
def test_a_history_measures_language_models_and_watches_their_kernels(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(SUITE)
    code = HISTORY.format(case="llama_tiny_tg_d0-opencl-float32-untuned")
    names = {"ADRENO_BENCH_CACHE": str(cache), "ADRENO_BENCH_RECORDS": str(tmp_path), "ASV_ENV_NAME": "py"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **names, "ASV_COMMIT": "c" * 40},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = RecordFile(tmp_path / "cccccccc-py.jsonl").load().records
    part = record.part(LlmPart)
    assert part
    assert part.tokens_per_s
    assert record.first_run_ms
    (profile,) = read_profiles(tmp_path / "cccccccc-py.kernels.gz", lambda _: True)
    assert "batch_decode_paged_kv" in {operator.function for operator in profile.operators}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bisect_names_the_release_whose_library_fails(tmp_path: Path, cache: Path, sidecar_cache: Path) -> None:
    (sidecar_cache / "toolchains").mkdir(exist_ok=True)
    if not (cache / "toolchains").exists():
        (cache / "toolchains").symlink_to(sidecar_cache / "toolchains")
    (tmp_path / "adreno-bench.toml").write_text(SUITE)
    case = "llama_tiny_tg_d0-opencl-float32-untuned"
    assert command.bench(tmp_path, cache, "run", "--case", case, "--quick")[0] == 0
    (record,) = RecordFile(tmp_path / "records.jsonl").load().records
    artifact = load_artifact(cache, record.artifact)
    assert artifact
    kernels = {"library": f"{artifact.loadable.sha256}*", "code": -54}
    (tmp_path / "faults.json").write_text(json.dumps({"failing_kernels": [kernels]}))
    words = ("bisect", "--good", "0.26.0", "--bad", record.tvm, "--case", case, "--json")
    code, out, err = command.bench(tmp_path, cache, *words, **{FAULTS_VARIABLE: str(tmp_path / "faults.json")})
    if "No matching distribution" in err:
        pytest.skip(f"the releases cannot be had here: {err}")
    assert code == 0, out + err
    assert json.loads(out)["first_bad"] == record.tvm
    assert "CL_INVALID_WORK_GROUP_SIZE" in out
