"""What a bundle's runner writes, made up: lines of a results folder, each bound to the one before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.tools.bundle.manifest import LINES, MANIFEST, id_of
from harness.tools.bundle.results import link_of

DESCRIBED = {
    "devices": [{"name": "GPU", "driver_version": "1.0", "platform": "P", "platform_version": "OpenCL 3.0"}],
    "files": [],
    "problem": "",
}


def line_of(content: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """A line with its newline, and its link."""
    text = json.dumps(content, sort_keys=True).encode()
    link = link_of(text, before)
    return f"{link} ".encode() + text + b"\n", link


def sections(**texts: str) -> str:
    return "\n".join(f"@adreno-bench {name}\n{text}\n\n@adreno-bench 0" for name, text in texts.items())


def device_line(run: str = "run-1", **machine: str) -> dict[str, Any]:
    """A Linux machine, unless it has properties of Android's."""
    told = {"machine": "x86_64", "node": "host", "system": "Linux 6.1", "processor": "unknown", **machine}
    said = {"name": "GPU", "driver_version": "1.0", "describe": json.dumps(DESCRIBED), "libc": "2.36", "done": True}
    return {"kind": "device", "run": run, "machine": sections(**told), "said": said}


def output(array: Any) -> dict[str, Any]:
    codes = {"i": 0, "u": 1, "f": 2, "b": 6}
    dtype = [codes[array.dtype.kind], array.dtype.itemsize * 8]
    return {"dtype": dtype, "shape": list(array.shape), "hex": array.tobytes().hex()}


def right_turn(answer: Any, wall_ms: Iterable[Any] = (2.0,) * 10, **more: Any) -> dict[str, Any]:
    """What the runner says of a case that it answered and timed."""
    taken = list(wall_ms)
    times = {"wall_ms": taken, "device_ms": taken[:3], "warm_up_ms": taken[:3], "warmed_up": True}
    ran = {"init_ms": 3.0, "first_run_ms": 4.0, "outputs": [output(answer)], "near": True}
    return {**ran, **times, "inferences": len(taken), "log": "", "done": True, **more}


def seen_line(turn: Iterable[str], said: Mapping[str, Any], second: int = 0, **looks: str) -> dict[str, Any]:
    at = f"2026-11-23T09:00:{second:02}.123456789"
    return {"kind": "seen", "turn": list(turn), "at": at, "before": "", "after": "", **looks, "said": dict(said)}


END: list[dict[str, Any]] = [{"kind": "peaks", "said": {"peaks": json.dumps({"copy_bytes_s": 1e9})}}, {"kind": "end"}]


def write_lines(results: Path, manifest: bytes, lines: Iterable[Mapping[str, Any]]) -> Path:
    """A results folder with these lines."""
    results.mkdir(parents=True, exist_ok=True)
    (results / MANIFEST).write_bytes(manifest)
    link, content = id_of(manifest), b""
    for line in lines:
        written, link = line_of(line, link)
        content += written
    (results / LINES).write_bytes(content)
    return results
