"""A model whose names are commands goes the whole way, and nobody on the way takes them for commands."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import psutil
import pytest
from command import start
from plain_network import write_plain_onnx
from waiting import LONG_S

from harness.base.outcome import Outcome
from harness.measure.records.record import RecordFile

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

HOSTILE = "a; rm -rf $HOME; touch $HOME/obeyed; `touch obeyed` & $(touch obeyed)"
SUITE = 'models = [{{ onnx = "{file}", name = "{name}" }}]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'


def hostile_model(folder: Path) -> Path:
    write_plain_onnx(folder)
    model = onnx.load(folder / "plain.onnx")
    model.graph.name = HOSTILE
    model.producer_name = HOSTILE
    inner = _inner(model)
    for node in model.graph.node:
        node.name = HOSTILE
        node.input[:] = [f"{name} {HOSTILE}" if name in inner else name for name in node.input]
        node.output[:] = [f"{name} {HOSTILE}" if name in inner else name for name in node.output]
    file = folder / f"{HOSTILE.replace('/', '%')}.onnx"
    onnx.save(model, file)
    return file


def _inner(model: onnx.ModelProto) -> set[str]:
    """Names that no caller of the model sees."""
    given = {value.name for value in (*model.graph.input, *model.graph.output, *model.graph.initializer)}
    return {name for node in model.graph.node for name in (*node.input, *node.output)} - given


def listening(pid: int) -> set[str]:
    """Addresses that a process and those below it listen on."""
    found = set()
    try:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            connections = process.net_connections(kind="inet")
            found |= {c.laddr.ip for c in connections if c.status in (psutil.CONN_LISTEN, psutil.CONN_NONE)}
    except psutil.Error:
        pass  # it ended while we looked
    return found


def test_names_that_are_commands_reach_no_shell(tmp_path: Path, cache: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    (home / "precious").touch()
    file = hostile_model(folder)
    (folder / "adreno-bench.toml").write_text(SUITE.format(file=file.name, name=HOSTILE))
    process = start(folder, cache, "run", HOME=str(home))
    addresses: set[str] = set()
    end = time.monotonic() + LONG_S
    while process.poll() is None and time.monotonic() < end:
        addresses |= listening(process.pid)
        time.sleep(0.2)
    _, said = process.communicate(timeout=LONG_S)
    (record,) = RecordFile(folder / "records.jsonl").load().records
    assert record.outcome is Outcome.OK, said
    assert (home / "precious").exists()
    assert not list(tmp_path.rglob("obeyed"))
    assert addresses == {"127.0.0.1"}
