"""A phone's shell and tools on this host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from waiting import LONG_S, eventually

from device_runner.stand_ins.virtual import VirtualPhone, phone, userland
from harness.tools.doctor import machine
from harness.tools.shared.finding import Condition


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """`/system/bin` of a phone with Android 14."""
    return install(tmp_path, "14")


def install(folder: Path, release: str) -> Path:
    if reason := userland.why_not():
        pytest.skip(f"{reason} here: apt-get install mksh toybox")
    folder.mkdir(parents=True, exist_ok=True)
    userland.install(folder, release)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = {"PATH": str(folder)}
    program = str(folder / command[0])
    return subprocess.run(
        [program, *command[1:]], env=path, capture_output=True, text=True, timeout=LONG_S, check=False
    )


def a_phone(home: Path) -> VirtualPhone:
    """One that does not run."""
    return VirtualPhone("", 0, "/", home, True, restart_adb=lambda: None, kill_adb=lambda: None)


def test_the_shell_is_mksh(installed: Path) -> None:
    assert "MIRBSD KSH" in run(installed, "sh", "-c", "echo $KSH_VERSION").stdout


def test_the_tools_are_toyboxs(installed: Path) -> None:
    assert all(
        (installed / name).readlink() == Path("toybox") for name in ("cat", "find", "setsid", "sha256sum", "timeout")
    )
    assert run(installed, "sh", "-c", "echo 1 | sha256sum").stdout.startswith("4355a46b19d348dc2f57c046f8ef63d4")


def test_there_is_nothing_that_android_does_not_link(installed: Path) -> None:
    known = set(run(installed, "toybox").stdout.split())
    assert "wget" in known
    assert not (installed / "wget").exists()


def test_what_the_phone_has_itself_stays(tmp_path: Path) -> None:
    (tmp_path / "date").write_text("ours")
    assert (install(tmp_path, "14") / "date").read_text() == "ours"


def test_setsid_tells_how_its_command_ended(installed: Path) -> None:
    assert run(installed, "setsid", "sh", "-c", "exit 3").returncode == 3


def test_setsid_of_android_11_says_0_before_its_command_has_begun(tmp_path: Path) -> None:
    folder = install(tmp_path, "11")
    told = tmp_path / "told"
    script = f"read -r line; cut -d ' ' -f 1,6 /proc/$$/stat >{told}.new; mv {told}.new {told}; exit 3"
    with subprocess.Popen(
        [folder / "setsid", folder / "sh", "-c", script], stdin=subprocess.PIPE, env={"PATH": str(folder)}
    ) as setsid:
        assert setsid.wait(LONG_S) == 0
        assert not told.exists()
        assert setsid.stdin
        setsid.stdin.write(b"go on\n")
    assert eventually(told.exists)
    itself, session = told.read_text().split()
    assert session == itself


def test_a_phone_that_says_it_has_android_11_has_its_setsid(tmp_path: Path) -> None:
    if userland.why_not():
        pytest.skip("no mksh and no toybox here")
    state = phone.prepare(tmp_path)
    assert (tmp_path / "system/bin/setsid").is_symlink()
    phone.save(tmp_path, state.changed({"properties": {"ro.build.version.release": "11"}}))
    phone.prepare(tmp_path)
    assert not (tmp_path / "system/bin/setsid").is_symlink()


def test_where_there_is_neither_this_hosts_shell_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert userland.why_not() == "no mksh and no toybox"
    phone.prepare(tmp_path / "phone")
    programs = tmp_path / "phone/system/bin"
    assert not userland.is_stock(programs)
    assert (programs / "sh").readlink() == Path("/bin/sh")
    assert not (programs / "cat").exists()
    assert "shell" in a_phone(tmp_path / "phone").emulated


def test_the_doctor_says_whose_shell_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not userland.why_not():
        (there,) = machine.CHECKS["phone's shell"](tmp_path)
        assert there.state is Condition.OK
    monkeypatch.setenv("PATH", str(tmp_path))
    (missing,) = machine.CHECKS["phone's shell"](tmp_path)
    assert missing.state is Condition.NOTE
    assert "no mksh and no toybox" in missing.seen
    assert "apt-get install mksh toybox" in missing.fix


def test_with_them_nothing_of_the_shell_is_emulated(tmp_path: Path) -> None:
    install((tmp_path / "system/bin"), "14")
    assert "shell" not in a_phone(tmp_path).emulated
