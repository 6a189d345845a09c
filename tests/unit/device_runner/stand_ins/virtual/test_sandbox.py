from __future__ import annotations

from pathlib import Path

import pytest

from device_runner.stand_ins.virtual import sandbox


def binds(line: list[str]) -> list[tuple[str, str, str]]:
    return [(line[i], line[i + 1], line[i + 2]) for i, word in enumerate(line) if word.endswith("bind")]


def test_only_data_can_be_written() -> None:
    line = sandbox.command(Path("/phone"), [Path("/opt/python")], ["run", "it"])
    assert [bind for bind in binds(line) if bind[0] == "--bind"] == [("--bind", "/phone/data", "/data")]
    assert ("--ro-bind", "/opt/python", "/opt/python") in binds(line)
    assert line[-3:] == ["--", "run", "it"]
    assert {"--die-with-parent", "--unshare-pid", "--remount-ro"} <= set(line)


def test_a_folder_inside_another_is_bound_once() -> None:
    readable = [Path("/opt/python/lib"), Path("/opt/python"), Path("/usr/lib/python3"), Path("/opt/python")]
    line = sandbox.command(Path("/phone"), readable, ["x"])
    assert [source for _, source, _ in binds(line) if source.startswith("/opt")] == ["/opt/python"]
    assert not any(source == "/usr/lib/python3" for _, source, _ in binds(line))


def test_without_bubblewrap_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.why_not() == "bubblewrap is not installed"


def test_without_namespaces_the_reason_is_bubblewraps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.why_not() == "bwrap: No permissions to create new namespace"
