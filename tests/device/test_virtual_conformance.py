"""What a phone does over adb, driven by the real adb binary and by adbutils, on our daemon and on Android's own."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from adb_backends import Backend, backend
from waiting import eventually

from device_runner.deadline import Deadline
from device_runner.transport.adb import Adb, AdbRefusal

pytestmark = [pytest.mark.rest, pytest.mark.device]
STDIN, STDOUT, WINDOW_SIZE = 0, 1, 5
"""Frames of shell version 2."""

ECHO_ONCE = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
while data := connection.recv(65536):
    connection.sendall(data)
"""
SAY = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.argv[2].encode())
print(connection.recv(65536).decode())
"""


@pytest.fixture(scope="module", params=["ours", pytest.param("debian", marks=pytest.mark.adbd)])
def device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Backend]:
    with backend(request.param, tmp_path_factory.mktemp(request.param), pytestconfig) as opened:
        yield opened


@pytest.fixture
def folder(device: Backend, request: pytest.FixtureRequest) -> str:
    """An empty folder on the device."""
    path = f"{device.root}/{abs(hash(request.node.nodeid)):x}"
    device.adb("shell", f"mkdir -p {path}")
    return path


def printed(said: bytes) -> bytes:
    """What the packets of version 2 of the shell's protocol carry of stdout: a line may be in two of them."""
    output = b""
    while said:
        kind, size = struct.unpack_from("<BI", said)
        output += said[5 : 5 + size] if kind == STDOUT else b""
        said = said[5 + size :]
    return output


class TestShell:
    def test_keeps_exit_code_stdout_and_stderr_apart(self, device: Backend) -> None:
        done = device.adb("shell", "echo out; echo err >&2; exit 7", check=False)
        assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")

    @pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("SEGV", 139), ("TERM", 143)])
    def test_tells_a_death_by_signal(self, device: Backend, name: str, code: int) -> None:
        assert device.adb("shell", f"kill -s {name} $$", check=False).returncode == code

    def test_gives_stdin_and_its_end(self, device: Backend) -> None:
        data = os.urandom(300_000)
        assert device.adb("shell", "wc -c", data=data).stdout.split() == [b"300000"]

    def test_holds_stdin_back_for_a_slow_reader(self, device: Backend) -> None:
        assert device.adb("shell", "sleep 0.3; wc -c", data=bytes(3_000_000)).stdout.split() == [b"3000000"]

    def test_survives_a_command_that_reads_nothing(self, device: Backend) -> None:
        assert device.adb("shell", "echo done", data=bytes(1_000_000)).stdout == b"done\n"

    def test_carries_much_output(self, device: Backend) -> None:
        assert device.adb("exec-out", "head -c 5000000 /dev/zero").stdout == bytes(5_000_000)
        assert len(device.adb("shell", "head -c 5000000 /dev/zero").stdout) == 5_000_000

    def test_version_1_merges_and_loses_the_code(self, device: Backend) -> None:
        done = device.adb("shell", "-x", "echo out; echo err >&2; exit 7", check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"out\nerr\n", b"")

    def test_version_1_hangs_up_on_what_the_command_leaves_behind(self, device: Backend) -> None:
        # mksh catches the signal, and so does its child until it has become `sleep`.
        child = device.adb("shell", "-x", "sleep 60 & echo $!; sleep 0.3").stdout.decode()
        assert eventually(lambda: device.adb("shell", f"kill -0 {child}", check=False).returncode != 0)

    def test_version_2_leaves_a_detached_child_alive(self, device: Backend) -> None:
        child = device.shell("sleep 60 >/dev/null 2>&1 </dev/null & echo $!").strip()
        assert device.adb("shell", f"kill {child}").returncode == 0

    def test_version_2_hangs_up_when_the_host_leaves(self, device: Backend, folder: str) -> None:
        command = f"trap 'echo hup >{folder}/trapped; exit' HUP; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen(
            device.command("shell", command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"ready\n"
            client.kill()
        assert eventually(lambda: device.shell(f"cat {folder}/trapped 2>/dev/null || true") == "hup\n")

    def test_version_2_closes_the_pipes_when_the_host_leaves(self, device: Backend, folder: str) -> None:
        read_on = f"exec 3<&0; (cat <&3; echo end >{folder}/eof) >/dev/null 2>&1 &"
        command = f"{read_on} exec 3<&-; trap '' HUP; echo ready; sleep 60"
        with subprocess.Popen(
            device.command("shell", command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"ready\n"
            client.kill()
        assert eventually(lambda: device.shell(f"cat {folder}/eof 2>/dev/null || true") == "end\n")

    def test_version_2_has_one_socket_for_stdin_and_stdout(self, device: Backend) -> None:
        one, two, errors = device.adb("shell", "for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done").stdout.split()
        assert one == two != errors
        assert one.startswith(b"socket:")

    def test_version_2_tells_the_code_when_nobody_holds_stdin_any_more(self, device: Backend, folder: str) -> None:
        held = f"(sleep 0.3; echo late >{folder}/late) <&3 >/dev/null 2>&1 &"
        assert device.adb("shell", f"exec 3<&0; {held} exit 5", check=False).returncode == 5
        assert device.shell(f"cat {folder}/late") == "late\n"

    def test_version_2_lets_a_command_be_that_lets_go_of_its_sockets(self, device: Backend, folder: str) -> None:
        # Not a shell: mksh keeps a copy of its first stderr.
        end = f"print('lived', file=open('{folder}/lived', 'w'))"
        program = f"import time; open('{folder}/ready', 'w'); time.sleep(0.6); {end}"
        command = f'exec {device.python} -I -S -c "{program}" </dev/null >/dev/null 2>&1'
        with subprocess.Popen(device.command("shell", command), stdin=subprocess.PIPE) as client:
            assert eventually(lambda: device.adb("shell", f"test -e {folder}/ready", check=False).returncode == 0)
            client.kill()
        assert eventually(lambda: device.shell(f"cat {folder}/lived 2>/dev/null || true") == "lived\n")

    def test_exec_carries_bytes_unchanged(self, device: Backend) -> None:
        assert device.adb("exec-out", r"printf 'a\r\nb\0\377'").stdout == b"a\r\nb\0\xff"

    def test_exec_in_ends_in_an_end_of_file_and_loses_nothing(self, device: Backend, folder: str) -> None:
        data = os.urandom(2_000_000)
        device.adb("exec-in", f"cat >{folder}/in", data=data)

        def arrived() -> bool:  # adb ends when it has sent all: perhaps before the shell has made the file
            return device.adb("shell", f"wc -c <{folder}/in", check=False).stdout.strip() == b"2000000"

        assert eventually(arrived)
        assert device.adb("exec-out", f"cat {folder}/in").stdout == data

    def test_gives_a_terminal_on_demand(self, device: Backend) -> None:
        done = device.adb("shell", "-tt", "test -t 0 && test -t 1 && tty; echo $TERM; exit 3", check=False)
        assert done.returncode == 3
        assert done.stdout.startswith(b"/dev/pts/")

    def test_runs_an_interactive_shell(self, device: Backend) -> None:
        done = device.adb("shell", "-tt", data=b"echo $((6 * 7))\nexit 5\n", check=False)
        assert b"42" in done.stdout
        assert done.returncode == 5

    def test_a_terminal_follows_the_size_of_the_hosts(self, device: Backend) -> None:
        adb = Adb(device.serial, device.adb_server)
        size = (
            f"{device.python} -I -S -c 'import os; print(*reversed(os.get_terminal_size()))'"  # stty need not be there
        )
        with adb.open(f"shell,v2,pty,TERM=vt100:read line; {size}; echo $TERM", Deadline(300)) as stream:
            for kind, data in ((WINDOW_SIZE, b"37x91,0x0\0"), (STDIN, b"\n")):
                stream.sendall(struct.pack("<BI", kind, len(data)) + data)
            stream.settimeout(60)
            said = b"".join(iter(lambda: stream.recv(4096), b""))
        assert b"37 91\r\nvt100\r\n" in printed(said)

    def test_many_at_once(self, device: Backend) -> None:
        from adbutils import AdbClient

        def talk(thread: int) -> list[str]:
            client = AdbClient("127.0.0.1", device.adb_server, socket_timeout=60)
            phone = client.device(device.serial)
            return [phone.shell2(f"echo {thread}.{i}", v2=True, timeout=30).stdout for i in range(16)]

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(talk, range(8)))
        assert answers == [[f"{thread}.{i}\n" for i in range(16)] for thread in range(8)]


class TestFiles:
    @pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_048_577, 20_000_000])
    def test_come_back_as_they_went(self, device: Backend, folder: str, tmp_path: Path, size: int) -> None:
        data = os.urandom(size)
        (tmp_path / "out").write_bytes(data)
        device.adb("push", str(tmp_path / "out"), f"{folder}/file")
        device.adb("pull", f"{folder}/file", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == data

    def test_keep_their_time_and_open_their_mode(self, device: Backend, folder: str, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("x")
        (tmp_path / "plain").chmod(0o640)
        (tmp_path / "program").write_text("x")
        (tmp_path / "program").chmod(0o755)
        os.utime(tmp_path / "plain", (1_600_000_000, 1_600_000_000))
        device.adb("push", str(tmp_path / "plain"), str(tmp_path / "program"), folder)
        assert device.shell(f"stat -c '%a %Y' {folder}/plain") == "666 1600000000\n"
        assert device.shell(f"stat -c %a {folder}/program") == "777\n"

    def test_trees_with_links_come_back_as_they_went(self, device: Backend, folder: str, tmp_path: Path) -> None:
        tree = tmp_path / "tree"
        (tree / "sub/deep").mkdir(parents=True)
        (tree / "sub/deep/a b ü").write_text("umlaut and space")
        (tree / "empty").touch()
        (tree / "sub/link").symlink_to("deep/a b ü")
        (tree / "only").mkdir()
        (tree / "only/dangling").symlink_to("./nowhere//at all")
        device.adb("push", str(tree), f"{folder}/tree")
        assert device.shell(f"readlink {folder}/tree/only/dangling") == "./nowhere//at all\n"
        device.adb("shell", f"rm {folder}/tree/only/dangling")  # pull follows links
        device.adb("pull", f"{folder}/tree", str(tmp_path / "back"))
        assert (tmp_path / "back/sub/deep/a b ü").read_text() == "umlaut and space"
        assert (tmp_path / "back/sub/link").read_text() == "umlaut and space"
        assert (tmp_path / "back/empty").read_bytes() == b""

    def test_replace_a_running_program(self, device: Backend, folder: str, tmp_path: Path) -> None:
        device.adb("shell", f"cp /usr/bin/sleep {folder}/sleep")
        pid = device.shell(f"{folder}/sleep 60 >/dev/null 2>&1 </dev/null & echo $!").strip()
        (tmp_path / "new").write_text("new")
        device.adb("push", str(tmp_path / "new"), f"{folder}/sleep")
        device.adb("shell", f"kill {pid}")
        assert device.shell(f"cat {folder}/sleep") == "new"

    def test_refuse_a_folder_that_cannot_be_written(self, device: Backend, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(bytes(1_000_000))
        done = device.adb("push", str(tmp_path / "file"), "/proc/nowhere/file", check=False)
        assert done.returncode != 0
        assert b"remote" in done.stderr

    def test_that_do_not_exist_are_said_not_to(self, device: Backend, tmp_path: Path) -> None:
        done = device.adb("pull", "/nope", str(tmp_path / "nope"), check=False)
        assert done.returncode != 0
        assert b"No such file or directory" in done.stderr

    def test_are_listed_with_mode_size_and_time(self, device: Backend, folder: str) -> None:
        device.adb("shell", f"printf 12345 >{folder}/five; chmod 640 {folder}/five; touch -d @1600000000 {folder}/five")
        listed = {
            line.split(maxsplit=3)[3]: line.split()[:3]
            for line in device.adb("ls", folder).stdout.decode().splitlines()
        }
        assert listed.keys() == {".", "..", "five"}
        assert [int(word, 16) for word in listed["five"]] == [stat.S_IFREG | 0o640, 5, 1_600_000_000]

    def test_are_known_to_adbutils(self, device: Backend, folder: str, tmp_path: Path) -> None:
        from adbutils import AdbClient

        sync = AdbClient("127.0.0.1", device.adb_server, socket_timeout=60).device(device.serial).sync
        assert sync.push(b"hello", f"{folder}/hello", mode=0o644) == 5
        assert sync.read_text(f"{folder}/hello") == "hello"
        assert sync.exists(f"{folder}/hello")
        assert not sync.exists(f"{folder}/nope")
        assert sync.stat(f"{folder}/hello").size == 5
        assert {entry.path for entry in sync.iter_directory(folder)} == {".", "..", "hello"}


def sync_request(name: bytes, argument: str) -> bytes:
    data = argument.encode()
    return name + struct.pack("<I", len(data)) + data


class TestSyncRefusals:
    """In the words of adbd, because a push that fails shows them to a person."""

    @pytest.mark.parametrize(
        ("said", "answer"),
        [
            (sync_request(b"NOPE", "/x"), b"unknown command 45504f4e"),
            (b"STAT" + struct.pack("<I", 1025), b"path too long"),
            (sync_request(b"SEND", "/data/local/tmp/x"), b"missing , in ID_SEND_V1"),
            (sync_request(b"SEND", "/data/local/tmp/x,99999999999999999999999"), b"bad mode"),
            (sync_request(b"SEND", "/data/local/tmp/x,33188") + b"NOPE\0\0\0\0", b"invalid data message"),
            (
                sync_request(b"SEND", "/system/x,33188") + b"DONE\0\0\0\0",
                b"couldn't create file: Read-only file system",
            ),
            (
                sync_request(b"SEND", "/system/no/x,33188") + b"DONE\0\0\0\0",
                b"secure_mkdirs failed: Read-only file system",
            ),
            (sync_request(b"RECV", "/nope"), b"open failed: No such file or directory"),
            (
                sync_request(b"SND2", "/data/local/tmp/x") + b"SND2" + struct.pack("<II", 0o100644, 0x40),
                b"unknown flags: 64",
            ),
            (sync_request(b"RCV2", "/data/local/tmp") + b"RCV2" + struct.pack("<I", 0x40), b"unknown flags: 64"),
        ],
    )
    def test_say_what_was_wrong(self, device: Backend, said: bytes, answer: bytes) -> None:
        if not device.root.startswith("/data"):
            pytest.skip("in a plain folder the paths of a phone are others")
        with Adb(device.serial, device.adb_server).open("sync:", Deadline(300)) as stream:
            stream.sendall(said)
            stream.settimeout(60)
            heard = stream.recv(8, socket.MSG_WAITALL)
            assert heard[:4] == b"FAIL"
            text = stream.recv(int.from_bytes(heard[4:], "little"), socket.MSG_WAITALL)
            assert text.replace(b"()", b"") == answer  # the parentheses are those of later releases

    @pytest.mark.parametrize(
        ("mode", "seen"), [("0755", "777"), ("33188", "666"), ("0x81a4", "666"), ("33188 ", "666")]
    )
    def test_a_mode_is_read_as_c_reads_numbers(self, device: Backend, folder: str, mode: str, seen: str) -> None:
        with Adb(device.serial, device.adb_server).open("sync:", Deadline(300)) as stream:
            stream.sendall(sync_request(b"SEND", f"{folder}/x,{mode}") + b"DONE\0\0\0\0")
            stream.settimeout(60)
            assert stream.recv(8, socket.MSG_WAITALL)[:4] == b"OKAY"
        assert device.shell(f"stat -c %a {folder}/x") == f"{seen}\n"


class TestSockets:
    def test_forward_carries_both_ways(self, device: Backend) -> None:
        with subprocess.Popen(
            device.command("shell", f"{device.python} -I -u -c '{ECHO_ONCE}'"), stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None
            remote = int(server.stdout.readline())
            local = int(device.adb("forward", "tcp:0", f"tcp:{remote}").stdout)
            data = os.urandom(1_000_000)
            with socket.create_connection(("127.0.0.1", local), 20) as connection:
                sender = threading.Thread(target=connection.sendall, args=(data,))
                sender.start()
                received = b""
                while len(received) < len(data):
                    received += connection.recv(1 << 16)
                sender.join()
            assert received == data
            assert server.wait(60) == 0
        device.adb("forward", "--remove", f"tcp:{local}")

    def test_forward_to_a_closed_port_ends_the_connection(self, device: Backend) -> None:
        local = int(device.adb("forward", "tcp:0", "tcp:1").stdout)
        with (
            socket.create_connection(("127.0.0.1", local), 20) as connection,
            contextlib.suppress(ConnectionResetError),
        ):
            assert connection.recv(1) == b""
        device.adb("forward", "--remove", f"tcp:{local}")

    @pytest.mark.parametrize("name", ["tcp:1:127.0.0.1", "tcp:127.0.0.1:1", "tcp:example.org:80"])
    def test_forward_leads_to_the_phone_alone(self, device: Backend, name: str) -> None:
        with pytest.raises(AdbRefusal):
            Adb(device.serial, device.adb_server).open(name, Deadline(300))

    def test_reverse_leads_to_the_host(self, device: Backend) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:

            def echo() -> None:
                connection = server.accept()[0]
                while data := connection.recv(65_536):
                    connection.sendall(data.upper())
                connection.close()

            thread = threading.Thread(target=echo)
            thread.start()
            remote = int(device.adb("reverse", "tcp:0", f"tcp:{server.getsockname()[1]}").stdout)
            said = subprocess.run(
                device.command("shell", f"{device.python} -I -c '{SAY}' {remote} hello"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
            thread.join(60)
        device.adb("reverse", "--remove-all")
        assert said.stdout == b"HELLO\n"

    def test_reverse_is_listed_guarded_and_removed(self, device: Backend) -> None:
        port = int(device.adb("reverse", "tcp:0", "tcp:4").stdout)
        assert f"tcp:{port} tcp:4" in device.adb("reverse", "--list").stdout.decode()
        again = device.adb("reverse", "--no-rebind", f"tcp:{port}", "tcp:5", check=False)
        assert again.returncode != 0
        assert b"cannot rebind existing socket" in again.stderr
        device.adb("reverse", f"tcp:{port}", "tcp:5")
        assert f"tcp:{port} tcp:5" in device.adb("reverse", "--list").stdout.decode()
        device.adb("reverse", "--remove", f"tcp:{port}")
        assert f"tcp:{port}" not in device.adb("reverse", "--list").stdout.decode()
        gone = device.adb("reverse", "--remove", f"tcp:{port}", check=False)
        assert gone.returncode != 0
        assert b"not found" in gone.stderr


def test_comes_back_after_a_reconnect(device: Backend) -> None:
    device.adb("reconnect", "device")

    def answers() -> bool:
        return device.adb("shell", "echo back", check=False).stdout == b"back\n"

    assert eventually(answers)


def test_the_host_can_leave_and_come_again(device: Backend) -> None:
    device.adb("disconnect", device.serial)
    device.adb("connect", device.serial)
    assert eventually(lambda: device.adb("get-state", check=False).stdout == b"device\n")
    assert device.shell("echo again") == "again\n"
