"""Log drivers: files that stay small and lose no line, and what is said about what cannot be."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until

ROTATED = ("--log-opt", "max-size=20k", "--log-opt", "max-file=1000")


def files(daemon: Daemon, container: str) -> list[Path]:
    return sorted((daemon.config.data_root / "containers" / container).glob("container.log*"))


def full_id(daemon: Daemon, name: str) -> str:
    return str(json.loads(daemon.docker("inspect", name).stdout)[0]["Id"])


def numbers(first: int, last: int) -> str:
    return "".join(f"{n}\n" for n in range(first, last + 1))


def has_room(log: Path, room: int) -> bool:
    """Tell if it is smaller than that. While a full file is put aside there is none."""
    try:
        return log.stat().st_size < room
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def counting(daemon: Daemon, *options: str, room: int = 20_480) -> Iterator[tuple[str, Callable[[int, int], None]]]:
    """A container that counts from one number to another when it is told to, and waits until its log file has room."""
    script = "while read first last; do seq $first $last; done"
    with daemon.docker_process("run", "-i", "--name", "box", *options, "busybox", "sh", "-c", script) as client:
        assert client.stdin is not None and client.stdout is not None
        says, shows = client.stdin, client.stdout

        def count(first: int, last: int) -> None:
            says.write(f"{first} {last}\n".encode())
            says.flush()
            while shows.readline() != f"{last}\n".encode():
                pass
            current = daemon.config.data_root / "containers" / box / "container.log"
            until(lambda: has_room(current, room), "the full file is put aside")

        until(lambda: daemon.docker("ps", "-q").stdout, "it runs")
        box = full_id(daemon, "box")
        yield box, count
        says.close()
        assert client.wait(60) == 0


# Slow enough for many files, quick enough for a test.
COUNT = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; [ $((i % 100)) = 0 ] && sleep 0.02; done"


@pytest.mark.parametrize("driver", ["json-file", "local"])
@pytest.mark.parametrize("compress", ["false", "true"])
def test_rotation_loses_no_line(daemon: Daemon, driver: str, compress: str) -> None:
    options = ("--log-driver", driver, "--log-opt", f"compress={compress}", *ROTATED)
    with counting(daemon, *options) as (box, count):
        follower = daemon.docker_process("logs", "-f", box)
        for first in range(1, 3000, 600):
            count(first, first + 599)
    with follower:
        assert follower.communicate(timeout=60)[0].decode() == numbers(1, 3000)
    assert len(files(daemon, box)) > 3
    packing = compress == "true"
    until(lambda: any(path.suffix == ".gz" for path in files(daemon, box)) == packing, "old files are packed if wanted")
    assert daemon.docker("logs", "box").stdout == numbers(1, 3000)
    assert daemon.docker("logs", "--tail", "2500", "box").stdout == numbers(501, 3000)
    assert daemon.docker("logs", "--tail", "1", "box").stdout == "3000\n"
    assert daemon.docker("logs", "--tail", "4000", "box").stdout == numbers(1, 3000)


def test_since_and_until_go_across_files(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "box", *ROTATED, "busybox", "sh", "-c", COUNT)
    lines = daemon.docker("logs", "-t", "box").stdout.splitlines()
    for n in (0, 700, 1500, 2999):
        stamp = lines[n].split()[0]
        later = [line.split()[1] for line in lines if line.split()[0] >= stamp]
        earlier = [line.split()[1] for line in lines if line.split()[0] <= stamp]
        assert daemon.docker("logs", "--since", stamp, "box").stdout.split() == later
        assert daemon.docker("logs", "--until", stamp, "box").stdout.split() == earlier


def test_long_lines_and_binary_output_go_across_files(daemon: Daemon) -> None:
    script = "while read line; do head -c 5000 /dev/urandom; done | tee /all"
    with daemon.docker_process("run", "-i", "--name", "box", *ROTATED, "busybox", "sh", "-c", script) as client:
        assert client.stdin is not None and client.stdout is not None
        for rotations in range(1, 4):
            client.stdin.write(b"more\n" * 8)
            client.stdin.flush()
            assert len(client.stdout.read(8 * 5000)) == 8 * 5000
            box = full_id(daemon, "box")
            until(lambda: len(files(daemon, box)) > rotations, "the full file is put aside")  # noqa: B023
        client.stdin.close()
        assert client.wait(60) == 0
    daemon.docker("cp", "box:/all", str(daemon.directory / "all"))
    answer = daemon.http("GET", "/containers/box/logs?stdout=1").body
    data = b""
    while answer:
        size = int.from_bytes(answer[4:8], "big")
        data, answer = data + answer[8 : 8 + size], answer[8 + size :]
    assert data == (daemon.directory / "all").read_bytes()


def test_old_files_go(daemon: Daemon) -> None:
    options = ("--log-opt", "max-size=20k", "--log-opt", "max-file=3")
    with counting(daemon, *options) as (box, count):
        for first in range(1, 3000, 600):
            count(first, first + 599)
    until(lambda: len(files(daemon, box)) == 3, "the oldest is gone, which is after the rotation")
    kept = files(daemon, box)
    shown = daemon.docker("logs", "box").stdout
    assert shown.endswith("3000\n") and numbers(1, 3000).endswith(shown)
    assert sum(path.stat().st_size for path in kept) < 150_000


def test_one_file_is_enough(daemon: Daemon) -> None:
    # One file is kept as two of half the size.
    with counting(daemon, "--log-opt", "max-size=20k", room=10_240) as (_, count):
        for first in range(1, 3000, 200):
            count(first, first + 199)
    shown = daemon.docker("logs", "box").stdout
    assert shown.endswith("3000\n") and numbers(1, 3000).endswith(shown) and len(shown) < 13_000
    assert sum(path.stat().st_size for path in files(daemon, full_id(daemon, "box"))) < 60_000


def test_a_follower_keeps_up_though_files_go(daemon: Daemon) -> None:
    options = ("--log-opt", "max-size=20k", "--log-opt", "max-file=1")
    # One file is kept as two of half the size. The follower may be late by one of them, so no more are filled at once.
    writing = counting(daemon, *options, room=10_240)
    with writing as (box, count), daemon.docker_process("logs", "-f", box) as follower:
        assert follower.stdout is not None
        try:
            for first in range(1, 3000, 200):
                count(first, first + 199)
                shown = b"".join(follower.stdout.readline() for _ in range(200))
                assert shown.decode() == numbers(first, first + 199)
        finally:
            follower.kill()


def test_a_killed_daemon_loses_no_line_and_goes_on_rotating(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    slow = COUNT.replace("sleep 0.02", "sleep 0.1")
    daemon.docker("run", "-d", "--name", "box", *ROTATED, "busybox", "sh", "-c", f"{slow}; sleep 600")
    container = full_id(daemon, "box")
    until(lambda: len(files(daemon, container)) > 1, "the first rotation")
    for _ in range(4):
        daemon.kill9()
        daemon.start()
    until(lambda: daemon.docker("logs", "--tail", "1", "box").stdout == "3000\n", "it is done")
    assert daemon.docker("logs", "box").stdout == numbers(1, 3000)
    before = len(files(daemon, container))
    daemon.docker("exec", "box", "sh", "-c", "seq 3001 5000 > /proc/1/fd/1")
    until(lambda: len(files(daemon, container)) > before, "it rotates still")
    assert daemon.docker("logs", "box").stdout == numbers(1, 5000)


def test_a_daemon_killed_in_the_middle_of_a_rotation(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "box", *ROTATED, "busybox", "sh", "-c", "echo one; sleep 600")
    until(lambda: daemon.docker("logs", "box").stdout == "one\n", "the line is there")
    log = daemon.config.data_root / "containers" / full_id(daemon, "box") / "container.log"
    daemon.kill9()
    log.rename(log.with_name("container.log.1"))
    daemon.start()
    until(log.exists, "the monitor begins a new file")
    daemon.docker("exec", "box", "sh", "-c", "echo two > /proc/1/fd/1")
    until(lambda: daemon.docker("logs", "box").stdout == "one\ntwo\n", "both lines are there")


def test_logs_of_all_runs_across_files(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "box", *ROTATED, "busybox", "sh", "-c", COUNT)
    daemon.docker("start", "-a", "box")
    assert daemon.docker("logs", "box").stdout == numbers(1, 3000) * 2


# --- what a line carries


def test_details_show_labels_variables_and_tag(daemon: Daemon) -> None:
    daemon.docker(
        "run", "--name", "box", "-l", "a=1 x", "-l", "b=2,=&", "-l", "c=3", "-e", "E=é1", "-e", "F1=q", "-e", "G=r",
        "--log-opt", "labels=b,a,zz", "--log-opt", "env=E", "--log-opt", "env-regex=^F",
        "--log-opt", "tag={{.Name}}/{{.ImageName}}/{{.DaemonName}}", "busybox", "sh", "-c", "echo hi; echo ho",
    )  # fmt: skip
    seen = daemon.http("GET", "/containers/box/logs?stdout=1&details=1").body
    attributes = b"E=%C3%A91,F1=q,a=1+x,b=2%2C%3D%26,tag=box%2Fbusybox%2Fdocker "
    assert seen.count(attributes) == 2 and seen.endswith(attributes + b"ho\n")
    assert daemon.docker("logs", "--details", "box").stdout.splitlines()[0].endswith(" hi")
    assert daemon.docker("logs", "box").stdout == "hi\nho\n"


def test_none_keeps_nothing(daemon: Daemon) -> None:
    done = daemon.docker("run", "--name", "box", "--log-driver", "none", "busybox", "echo", "hi")
    assert done.stdout == "hi\n"
    refused = daemon.docker("logs", "box", check=False)
    assert "configured logging driver does not support reading" in refused.stderr
    assert files(daemon, full_id(daemon, "box")) == []


def test_the_path_of_the_log(daemon: Daemon) -> None:
    paths = {}
    for driver in ("json-file", "local", "none"):
        daemon.docker("run", "--name", driver, "--log-driver", driver, "busybox", "echo", "hi")
        paths[driver] = json.loads(daemon.docker("inspect", driver).stdout)[0]["LogPath"]
    assert os.path.exists(paths.pop("json-file"))
    assert paths == {"local": "", "none": ""}


# --- what is refused


@pytest.mark.parametrize(
    ("config", "status", "message"),
    [
        ({"Type": "paper"}, 400, 'error looking up logging plugin paper: plugin "paper" not found'),
        ({"Type": "awslogs"}, 501, "log driver awslogs is not implemented by Husk yet"),
        ({"Config": {"foo": "1"}}, 400, "unknown log opt 'foo' for json-file log driver"),
        ({"Type": "local", "Config": {"tag": "x"}}, 400, "unknown log opt 'tag' for log driver local"),
        ({"Config": {"max-size": "x"}}, 400, "failed to initialize logging driver: invalid size: 'x'"),
        ({"Config": {"max-file": "0"}}, 400, "failed to initialize logging driver: max-file cannot be less than 1"),
        (
            {"Config": {"compress": "true"}},
            400,
            "failed to initialize logging driver: compress cannot be true when max-file is less than 2 or max-size is "
            "not set",
        ),
        ({"Config": {"mode": "fast"}}, 400, "logger: logging mode not supported: fast"),
    ],
)
def test_what_is_refused_creates_nothing(daemon: Daemon, config: Any, status: int, message: str) -> None:
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": {"LogConfig": config}}
    answer = daemon.http("POST", "/containers/create", body)
    assert (answer.status, answer.message) == (status, message)
    assert daemon.docker("ps", "-aq").stdout == ""


# --- the daemon's own choice


def test_the_daemons_default() -> None:
    with Daemon() as daemon:
        daemon.stop()
        settings = daemon.directory / "own.json"
        settings.write_text(json.dumps({"log-driver": "local", "log-opts": {"max-size": "5m"}}))
        daemon.start("--config-file", str(settings))
        assert daemon.docker("info", "--format", "{{.LoggingDriver}}").stdout == "local\n"
        shown = {}
        for name, options in (
            ("plain", []),
            ("own", ["--log-opt", "max-file=2"]),
            ("other", ["--log-driver", "json-file"]),
        ):
            daemon.docker("create", "--name", name, *options, "busybox", "true")
            shown[name] = json.loads(daemon.docker("inspect", name).stdout)[0]["HostConfig"]["LogConfig"]
        assert shown == {
            "plain": {"Type": "local", "Config": {"max-size": "5m"}},
            "own": {"Type": "local", "Config": {"max-size": "5m", "max-file": "2"}},
            "other": {"Type": "json-file", "Config": {}},
        }


def test_flags_choose_it_too() -> None:
    with Daemon("--log-driver", "none") as daemon:
        daemon.docker("run", "--name", "box", "busybox", "echo", "hi")
        assert "does not support reading" in daemon.docker("logs", "box", check=False).stderr


def test_a_daemon_with_a_wrong_default_does_not_start() -> None:
    daemon = Daemon("--log-opt", "foo=1")
    try:
        with pytest.raises(AssertionError, match=re.escape("unknown log opt 'foo' for json-file log driver")):
            daemon.start()
    finally:
        daemon.arguments = ()
        daemon.close()
