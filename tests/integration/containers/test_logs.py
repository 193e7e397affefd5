"""`docker logs`: every byte that was written, on its stream, in its order, from where and until when one asks."""

import datetime
import hashlib
import os
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient, split_frames, stream_of

STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")


def run(daemon: Daemon, script: str, wait: bool = True, **config: Any) -> str:
    """A container that runs a script, by default to its end."""
    body = {"Image": "busybox", "Cmd": ["sh", "-c", script], **config}
    container = str(daemon.http("POST", "/containers/create", body).json()["Id"])
    assert daemon.http("POST", f"/containers/{container}/start").status == 204
    if wait:
        assert daemon.http("POST", f"/containers/{container}/wait").status == 200
    return container


def logs(daemon: Daemon, container: str, query: str = "") -> Answer:
    return daemon.http("GET", f"/containers/{container}/logs?stdout=1&stderr=1&{query}")


def text(daemon: Daemon, container: str, query: str = "") -> bytes:
    return b"".join(data for _, data in split_frames(logs(daemon, container, query).body))


def said(daemon: Daemon, *deeds: str) -> str:
    """A container that has done these one after the other, to its end: each when what the one before has written is in
    the log. Otherwise two may be read at once, as of one moment, and those of two streams in any order."""
    container = run(daemon, "".join(f"read word; {deed}\n" for deed in deeds), wait=False, OpenStdin=True)
    with RawClient(daemon.raw(20)) as writer:
        writer.request("POST", f"/containers/{container}/attach?stream=1&stdin=1", headers={"Upgrade": "tcp"})
        writer.head()
        for number in range(len(deeds)):
            writer.socket.sendall(b"on\n")
            until(lambda n=number: text(daemon, container).count(b"\n") > n, "its line is in the log")  # type: ignore[misc]
    assert daemon.http("POST", f"/containers/{container}/wait").status == 200
    return container


# --- bytes


def test_frames_per_stream(daemon: Daemon):
    container = said(daemon, "echo one", "echo two >&2", "echo three")
    answer = logs(daemon, container)
    assert answer.headers["Content-Type"] == "application/vnd.docker.multiplexed-stream"
    assert answer.body == (b"\x01\0\0\0\0\0\0\x04one\n\x02\0\0\0\0\0\0\x04two\n\x01\0\0\0\0\0\0\x06three\n")


def test_one_stream_alone(daemon: Daemon):
    container = run(daemon, "echo out; echo err >&2")
    assert daemon.http("GET", f"/containers/{container}/logs?stderr=1").body == b"\x02\0\0\0\0\0\0\x04err\n"
    assert daemon.http("GET", f"/containers/{container}/logs?stdout=1").body == b"\x01\0\0\0\0\0\0\x04out\n"
    done = daemon.docker("logs", container)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_no_stream_is_400(daemon: Daemon):
    answer = daemon.http("GET", f"/containers/{run(daemon, 'true')}/logs")
    assert (answer.status, answer.message) == (400, "Bad parameters: you must choose at least one stream")


def test_a_terminal_is_raw(daemon: Daemon):
    answer = logs(daemon, run(daemon, "echo one; echo two >&2", Tty=True))
    assert (answer.headers["Content-Type"], answer.body) == ("application/vnd.docker.raw-stream", b"one\r\ntwo\r\n")


def test_a_line_without_its_newline(daemon: Daemon):
    assert text(daemon, run(daemon, "printf 'a\\nno newline'")) == b"a\nno newline"
    assert text(daemon, run(daemon, "printf 'no newline'; printf err >&2")) in (b"no newlineerr", b"errno newline")
    assert text(daemon, run(daemon, "printf '\\n\\nx\\n\\n'")) == b"\n\nx\n\n"


def _written(daemon: Daemon, container: str) -> bytes:
    return Path(daemon.http("GET", f"/containers/{container}/json").json()["LogPath"]).read_bytes()


def test_a_line_is_told_when_it_is_whole_or_its_run_has_ended(daemon: Daemon):
    script = "echo first; printf 'name: '; while [ ! -e /go ]; do sleep 0.05; done; echo you; printf last; sleep 1000"
    container = run(daemon, script, wait=False)
    until(lambda: b" P name: " in _written(daemon, container), "the piece is written")
    assert text(daemon, container) == text(daemon, container, "tail=1") == b"first\n"
    daemon.docker("exec", container, "touch", "/go")
    until(lambda: b" P last" in _written(daemon, container), "the last piece is written")
    assert text(daemon, container) == b"first\nname: you\n"
    daemon.docker("kill", container)
    assert text(daemon, container) == b"first\nname: you\nlast"
    # What a run has left stays told while the next one runs.
    daemon.docker("start", container)
    until(lambda: _written(daemon, container).count(b" P last") == 2, "it has written again")
    assert text(daemon, container) == b"first\nname: you\nlastfirst\nname: you\n"


def test_every_byte_survives(daemon: Daemon, tmp_path):
    data = random.Random(3).randbytes(300_000) + bytes(range(256)) + b"\r\n\0\n\r"
    (tmp_path / "data").write_bytes(data)
    container = run(daemon, "cat /in/data", HostConfig={"Binds": [f"{tmp_path}:/in"]})
    assert hashlib.sha256(text(daemon, container)).digest() == hashlib.sha256(data).digest()


def test_a_long_line(daemon: Daemon):
    container = run(daemon, "head -c 1048576 /dev/zero | tr '\\0' x; echo; echo after")
    assert text(daemon, container) == b"x" * (1 << 20) + b"\nafter\n"
    assert text(daemon, container, "tail=2") == b"x" * (1 << 20) + b"\nafter\n"
    assert text(daemon, container, "tail=1") == b"after\n"
    stamped = text(daemon, container, "timestamps=1")
    assert len(STAMP.findall(stamped)) == 2, "the pieces of a long line have one time"


def test_streams_do_not_mix_within_a_line(daemon: Daemon):
    script = "for i in 1 2 3 4 5 6 7 8 9; do printf out; printf err >&2; done; echo; echo >&2"
    body = logs(daemon, run(daemon, script)).body
    assert (stream_of(body, 1), stream_of(body, 2)) == (b"out" * 9 + b"\n", b"err" * 9 + b"\n")


def test_many_lines(daemon: Daemon):
    container = run(daemon, "seq 200000")
    assert text(daemon, container) == b"".join(b"%d\n" % n for n in range(1, 200_001))
    assert daemon.docker("logs", "--tail", "2", container).stdout == "199999\n200000\n"


def test_nothing_was_written(daemon: Daemon):
    answer = logs(daemon, run(daemon, "true"))
    assert (answer.status, answer.body) == (200, b"")


def test_a_container_that_never_ran(daemon: Daemon):
    container = daemon.http("POST", "/containers/create", {"Image": "busybox"}).json()["Id"]
    answer = logs(daemon, container)
    assert (answer.status, answer.body) == (200, b"")


def test_a_removed_container_is_404(daemon: Daemon):
    container = run(daemon, "echo x")
    daemon.docker("rm", container)
    answer = logs(daemon, container)
    assert (answer.status, answer.message) == (404, f"No such container: {container}")


def test_without_a_log(daemon: Daemon):
    container = run(daemon, "echo x", HostConfig={"LogConfig": {"Type": "none"}})
    answer = logs(daemon, container)
    assert (answer.status, answer.message) == (501, "configured logging driver does not support reading")
    assert daemon.docker("run", "--rm", "--log-driver", "none", "busybox", "echo", "seen").stdout == "seen\n"


# --- which lines


@pytest.mark.parametrize(
    ("tail", "lines"),
    [
        ("1", b"5\n"),
        ("3", b"3\n4\n5\n"),
        ("5", b"1\n2\n3\n4\n5\n"),
        ("100", b"1\n2\n3\n4\n5\n"),
        ("all", b"1\n2\n3\n4\n5\n"),
        ("", b"1\n2\n3\n4\n5\n"),
        ("0", b""),
        ("-1", b"1\n2\n3\n4\n5\n"),
        ("many", b"1\n2\n3\n4\n5\n"),
    ],
)
def test_tail(daemon: Daemon, five: str, tail: str, lines: bytes):
    assert text(daemon, five, f"tail={tail}") == lines


@pytest.fixture
def five(daemon: Daemon) -> str:
    return run(daemon, "seq 5")


def test_tail_with_an_unfinished_line(daemon: Daemon):
    container = run(daemon, "echo a; echo b; printf c")
    assert text(daemon, container, "tail=1") == b"c"
    assert text(daemon, container, "tail=2") == b"b\nc"


def test_timestamps(daemon: Daemon):
    begun = time.time()
    lines = text(daemon, run(daemon, "echo a; echo b"), "timestamps=1").splitlines()
    assert [STAMP.sub(b"", line) for line in lines] == [b"a", b"b"]
    moment = datetime.datetime.fromisoformat(lines[0][:19].decode() + "+00:00").timestamp()
    assert int(begun) <= moment <= time.time()


def test_since_and_until(daemon: Daemon):
    container = said(daemon, "echo a", "echo b", "echo c")
    stamps = [line.split()[0].decode() for line in text(daemon, container, "timestamps=1").splitlines()]
    seconds = [_unix(stamp) for stamp in stamps]
    assert text(daemon, container, f"since={seconds[1]}") == b"b\nc\n"
    assert text(daemon, container, f"until={seconds[1]}") == b"a\nb\n"
    assert text(daemon, container, f"since={seconds[1]}&until={seconds[1]}") == b"b\n"
    assert text(daemon, container, f"since={stamps[2]}") == b"c\n"
    assert text(daemon, container, f"since={int(float(seconds[0]))}") == b"a\nb\nc\n"
    assert text(daemon, container, "since=0&until=0") == b"a\nb\nc\n"
    assert text(daemon, container, "until=1") == b""
    assert text(daemon, container, f"tail=2&until={seconds[1]}") == b"b\n"


def _unix(stamp: str) -> str:
    whole = datetime.datetime.fromisoformat(stamp[:19] + "+00:00").timestamp()
    return f"{whole:.0f}.{stamp[20:29]}"


@pytest.mark.parametrize(
    ("option", "seen"),
    [
        (["--since", "1h"], True),
        (["--since", "2020-01-01"], True),
        (["--since", "2020-01-01T00:00:00"], True),
        (["--since", "2020-01-01T00:00:00Z"], True),
        (["--since", "2020-01-01T00:00:00.123456789+02:00"], True),
        (["--since", "1577836800"], True),
        (["--since", "1577836800.5"], True),
        (["--until", "1m30s"], False),
        (["--until", "2020-01-01T00:00:00Z"], False),
        (["--until", "1577836800"], False),
        (["--since", "2100-01-01"], False),
    ],
)
def test_all_forms_of_time(daemon: Daemon, option: list[str], seen: bool):
    container = run(daemon, "echo x")
    assert daemon.docker("logs", *option, container).stdout == ("x\n" if seen else "")


@pytest.mark.parametrize("query", ["since=yesterday", "until=2020-99-99"])
def test_no_time_is_400(daemon: Daemon, query: str):
    assert logs(daemon, run(daemon, "true"), query).status == 400


def test_details(daemon: Daemon):
    container = run(daemon, "echo x")
    assert daemon.docker("logs", "--details", container).stdout.strip() == "x"


# --- following


def test_follow_until_the_exit(daemon: Daemon):
    container = run(daemon, "for i in 1 2 3; do echo $i; sleep 0.05; done; printf end", wait=False)
    assert daemon.docker("logs", "-f", container).stdout == "1\n2\n3\nend"


def test_follow_sees_each_line_as_it_comes(daemon: Daemon):
    container = run(daemon, "while read l; do echo $l; done", wait=False, OpenStdin=True)
    with RawClient(daemon.raw(20)) as writer, RawClient(daemon.raw(20)) as reader:
        reader.request("GET", f"/containers/{container}/logs?stdout=1&follow=1")
        assert reader.head().status == 200
        writer.request("POST", f"/containers/{container}/attach?stream=1&stdin=1", headers={"Upgrade": "tcp"})
        writer.head()
        for n in range(20):
            writer.socket.sendall(b"%d\n" % n)
            assert reader.read_until(b"%d\n\r\n" % n)


def test_follow_of_one_that_has_ended_ends(daemon: Daemon):
    assert daemon.docker("logs", "-f", run(daemon, "echo x")).stdout == "x\n"


def test_follow_with_tail(daemon: Daemon):
    container = run(daemon, "echo a; echo b; until [ -e /go ]; do sleep 0.02; done; echo c", wait=False)
    until(lambda: b"b\n" in text(daemon, container), "two lines are there")
    with daemon.docker_process("logs", "-f", "--tail", "1", container) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"b\n"
        daemon.docker("exec", container, "touch", "/go", check=False)  # it may end with the container
        assert child.stdout.read() == b"c\n"


def test_follow_until_a_moment(daemon: Daemon):
    container = run(daemon, "while true; do echo x; sleep 0.02; done", wait=False)
    until(lambda: text(daemon, container), "it writes")
    assert b"x\n" in text(daemon, container, f"follow=1&until={time.time() + 0.3:.9f}")


def test_follow_ends_when_the_container_is_removed(daemon: Daemon):
    container = run(daemon, "echo x; sleep 1000", wait=False)
    with daemon.docker_process("logs", "-f", container) as child:
        assert child.stdout is not None and child.stdout.readline() == b"x\n"
        daemon.docker("rm", "-f", container)
        assert child.wait(20) == 0


def test_follow_a_lot(daemon: Daemon):
    container = run(daemon, "seq 100000", wait=False)
    done = daemon.docker("logs", "-f", container)
    assert done.stdout == "".join(f"{n}\n" for n in range(1, 100_001))


def test_many_followers(daemon: Daemon):
    container = run(daemon, "read l; seq 1000", wait=False, OpenStdin=True)
    children = [daemon.docker_process("logs", "-f", container) for _ in range(5)]
    daemon.docker("attach", container, input="go\n")
    for child in children:
        assert child.communicate(timeout=20)[0].splitlines()[-1] == b"1000"


def test_logs_of_all_runs(daemon: Daemon):
    container = run(daemon, "echo run")
    daemon.docker("start", "-a", container)
    assert daemon.docker("logs", container).stdout == "run\nrun\n"


def test_a_follower_that_leaves_holds_nothing(daemon: Daemon):
    container = run(daemon, "echo x; sleep 1000", wait=False)
    log = str(daemon.config.data_root / "containers" / container / "container.log")
    with RawClient(daemon.raw(20)) as reader:
        reader.request("GET", f"/containers/{container}/logs?stdout=1&follow=1")
        reader.read_until(b"x\n")
        assert log in open_files(daemon)
    until(lambda: log not in open_files(daemon), "the daemon closes the log")


def open_files(daemon: Daemon) -> set[str]:
    found = set()
    for name in os.listdir(f"/proc/{daemon.pid}/fd"):
        try:
            found.add(os.readlink(f"/proc/{daemon.pid}/fd/{name}"))
        except OSError:
            continue
    return found
