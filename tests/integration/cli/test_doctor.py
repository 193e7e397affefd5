"""`husk doctor CONTAINER` with a real daemon, and what a daemon says that cannot start."""

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.husk import husk

PROGRAM = Path(__file__).parents[3] / ".venv/bin/husk"


def why(daemon: Daemon, name: str) -> str:
    return husk(daemon, "doctor", name, code=1).stdout


def test_the_exit_status_says_whether_containers_can_run(tmp_path: Path) -> None:
    done = subprocess.run([PROGRAM, "doctor", "--data-root", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    (tmp_path / "state.db").write_bytes(b"no database" * 1000)
    done = subprocess.run([PROGRAM, "doctor", "--quiet", "--data-root", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.startswith("FAIL  records")


def test_programs_that_cannot_be_run(daemon: Daemon) -> None:
    husk(daemon, "run", "--name", "missing", "busybox", "no-such-program", code=127)
    assert "FAIL  program" in why(daemon, "missing") and "is not in the image" in why(daemon, "missing")
    husk(daemon, "run", "--name", "barred", "busybox", "/etc/passwd", code=126)
    assert "FAIL  program" in why(daemon, "barred")
    husk(daemon, "rm", "missing", "barred")


def test_one_that_fails_tells_its_last_lines(daemon: Daemon) -> None:
    husk(daemon, "run", "--name", "fails", "busybox", "sh", "-c", "echo no database >&2; exit 3", code=3)
    told = why(daemon, "fails")
    assert "it ended with status 3" in told and "    no database" in told
    husk(daemon, "rm", "fails")


def test_a_mount_that_is_gone(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    husk(daemon, "create", "--name", "bound", "--mount", f"type=bind,src={tmp_path}/data,dst=/data", "busybox", "true")
    (tmp_path / "data").rmdir()
    husk(daemon, "start", "bound", code=1)
    assert f"what it mounts is not there any more: {tmp_path}/data" in why(daemon, "bound")
    husk(daemon, "rm", "bound")


def test_a_port_that_is_taken(daemon: Daemon) -> None:
    husk(daemon, "run", "-d", "--name", "first", "-p", "127.0.0.1:28181:80", "busybox", "sleep", "1000")
    husk(daemon, "run", "-d", "--name", "second", "-p", "127.0.0.1:28181:80", "busybox", "sleep", "1000", code=125)
    assert "the port 28181/tcp that it publishes is taken by first" in why(daemon, "second")
    assert husk(daemon, "doctor", "first").stdout.startswith("ok    state")
    husk(daemon, "rm", "-f", "first", "second")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp") as name:
        yield Path(name)


def started(place: Path, *arguments: str, before: tuple[str, ...] = ()) -> str:
    """Return the words of a daemon that cannot start."""
    own = [f"--data-root={place}/data", f"--exec-root={place}/run", "--bridge=none"]
    done = subprocess.run(
        [*before, str(PROGRAM), "serve", *own, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_a_daemon_that_cannot_start_says_what_to_do(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "another program has this port" in started(place, "-H", f"tcp://127.0.0.1:{port}")
    (place / "file").touch()
    assert "choose another path with -H" in started(place, "-H", f"unix://{place}/file")
    without = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    assert "lacks the right CAP_SYS_ADMIN" in started(place, before=without)
    apart = ("unshare", "--mount", "sh", "-c", 'umount -R -l /sys/fs/cgroup && exec "$@"', "sh")
    assert "mount -t cgroup2 none /sys/fs/cgroup" in started(place, before=apart)
    assert "Choose another with --data-root" in started(place, "--data-root", f"{place}/file/data")


def test_where_a_daemon_may_not_write(place: Path) -> None:
    (place / "locked").mkdir()
    locked = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o ro none {place}/locked && exec "$@"', "sh")
    root = started(place, "--data-root", f"{place}/locked", before=locked)
    assert root.endswith("/lock: Read-only file system. Choose another place with --data-root")
    for path in ("s", "deeper/s"):
        told = started(place, "-H", f"unix://{place}/locked/{path}", before=locked)
        assert told.endswith(
            f"cannot listen on {place}/locked/{path}: Read-only file system. Choose another path with -H"
        )


def test_a_taken_port_is_told_with_the_flag_that_chose_it(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag in ("--metrics-addr", "--dashboard"):
            told = started(place, "-H", f"unix://{place}/s", flag, address)
            assert told.endswith(f"Stop it, or choose another port with {flag}")
