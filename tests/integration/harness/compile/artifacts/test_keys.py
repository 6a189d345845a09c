"""Under which key a thing is kept: everything that decides what is compiled is part of it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compile_requests import request_for
from plain_network import write_plain_onnx

from harness.compile.artifacts.artifact import RESULT
from harness.compile.artifacts.keys import ROOT, sources
from harness.compile.artifacts.kinds import KINDS


@pytest.mark.slow
def test_the_worker_runs_nothing_of_ours_that_is_no_part_of_the_key(tmp_path: Path, sidecar_cache: Path) -> None:
    write_plain_onnx(tmp_path)
    request = dataclasses.asdict(request_for(tmp_path / "plain.onnx", "clml"))
    llvm = dataclasses.asdict(request_for(request["model_file"], "cpu"))
    job = {
        "memory_bytes": 1 << 62,
        "out": str(tmp_path),
        "seed": 1,
        "inputs": {},
        "labelled": "",
        "score": "",
        "original": {"onnx": request["model_file"], "program": None, "judge": "", "trust": False, "fixed": []},
    }
    kinds = {"reference": request, "oracle": llvm, "witness": llvm, "compile": request}
    for kind, asked in kinds.items():
        (tmp_path / f"{kind}.json").write_text(
            json.dumps({**job, "place": KINDS[kind].place, "author": "", "request": asked})
        )
    script = f"""
        import json, sys
        from pathlib import Path
        from harness.compile.artifacts.worker import main
        for kind in {list(kinds)}:
            main(Path({str(tmp_path)!r}) / f"{{kind}}.json", {os.getpid()})
            result = json.loads((Path({str(tmp_path)!r}) / {RESULT!r}).read_text())
            assert "done" in result, result
        ours = [m for n, m in sys.modules.items() if n.split(".")[0] in ("harness", "device_runner")]
        print(*(m.__file__ for m in ours if m.__file__), sep="\\n")
    """
    lines = [line.strip() for line in script.splitlines()]
    code = "\n".join([*lines[1:5], *(f"    {line}" for line in lines[5:8]), *lines[8:]])
    environment = {**os.environ, "ADRENO_BENCH_CACHE": str(sidecar_cache)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    ran = {Path(line) for line in done.stdout.splitlines() if line.startswith(str(ROOT))}
    assert len(ran) > 50
    assert sorted(map(str, ran - set(sources()))) == []
