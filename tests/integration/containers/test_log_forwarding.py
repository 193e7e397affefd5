"""Drivers that send a log elsewhere: each line arrives, also when the receiver or the daemon was away."""

import contextlib
import gzip
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until


class Receiver:
    """Keeps what comes: datagrams as they are, the bytes of streams joined."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.channel.settimeout(0.1)
        self.datagrams: list[bytes] = []
        self.stream = b""
        self._done = False
        stream = channel.type == socket.SOCK_STREAM
        if stream:
            channel.listen()
        self._thread = threading.Thread(daemon=True, target=self._accept if stream else self._receive)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.channel.getsockname()[1])

    def _receive(self) -> None:
        while not self._done:
            with contextlib.suppress(TimeoutError):
                self.datagrams.append(self.channel.recv(1 << 16))

    def _accept(self) -> None:
        while not self._done:
            with contextlib.suppress(TimeoutError), self.channel.accept()[0] as connection:
                connection.settimeout(0.1)
                while not self._done:
                    with contextlib.suppress(TimeoutError):
                        data = connection.recv(1 << 16)
                        if not data:
                            break
                        self.stream += data

    def close(self) -> None:
        self._done = True
        self._thread.join()
        self.channel.close()


@contextlib.contextmanager
def listening(kind: int, port: int = 0) -> Iterator[Receiver]:
    channel = socket.socket(socket.AF_INET, kind)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    channel.bind(("127.0.0.1", port))
    receiver = Receiver(channel)
    try:
        yield receiver
    finally:
        receiver.close()


@contextlib.contextmanager
def listening_at(path: Path, kind: int = socket.SOCK_DGRAM) -> Iterator[Receiver]:
    channel = socket.socket(socket.AF_UNIX, kind)
    channel.bind(str(path))
    receiver = Receiver(channel)
    try:
        yield receiver
    finally:
        receiver.close()
        path.unlink()


def options(driver: str, **given: str) -> list[str]:
    words = ["--log-driver", driver]
    for name, value in given.items():
        words += ["--log-opt", f"{name.replace('_', '-')}={value}"]
    return words


@pytest.mark.parametrize("driver", ["udp", "tcp"])
def test_syslog(daemon: Daemon, driver: str) -> None:
    with listening(socket.SOCK_DGRAM if driver == "udp" else socket.SOCK_STREAM) as receiver:
        given = options("syslog", syslog_address=f"{driver}://127.0.0.1:{receiver.port}", tag="{{.Name}}")
        daemon.docker("run", "--name", "box", *given, "busybox", "sh", "-c", "echo one; echo two >&2")

        def lines() -> list[bytes]:
            return (receiver.stream or b"".join(receiver.datagrams)).splitlines()

        until(lambda: len(lines()) == 2, "both lines arrive")
        # Which stream is read first is chance.
        error, output = sorted(lines())
        assert re.fullmatch(rb"<30>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d box\[\d+\]: one", output)
        assert re.fullmatch(rb"<27>.* box\[\d+\]: two", error)
    assert daemon.docker("logs", "box").stdout == "one\n", "and docker logs shows them too"


def test_syslog_in_its_newer_form_to_a_socket_of_this_host(daemon: Daemon) -> None:
    with listening_at(daemon.directory / "log.sock") as receiver:
        given = options(
            "syslog",
            syslog_address=f"unixgram://{daemon.directory}/log.sock",
            syslog_format="rfc5424micro",
            syslog_facility="local3",
        )
        container = daemon.docker("run", "-d", *given, "busybox", "echo", "hi").stdout.strip()
        until(lambda: receiver.datagrams, "the line arrives")
        tag = container[:12].encode()
        pattern = rb"<158>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ " + tag + rb" \d+ " + tag + rb" - hi\n"
        assert re.fullmatch(pattern, receiver.datagrams[0])


def test_gelf(daemon: Daemon) -> None:
    with listening(socket.SOCK_DGRAM) as receiver:
        given = options("gelf", gelf_address=f"udp://127.0.0.1:{receiver.port}", labels="color", env="SIZE")
        script = "echo hi; head -c 4000 /dev/urandom | od -A n -t x1 | tr -d ' \\n'; echo"
        daemon.docker(
            "run", "--name", "box", "-l", "color=red", "-e", "SIZE=9", *given, "busybox", "sh", "-c", script
        )  # fmt: skip
        until(lambda: len(receiver.datagrams) > 3, "all datagrams arrive")
        first: dict[str, Any] = json.loads(gzip.decompress(receiver.datagrams[0]))
        assert first["short_message"] == "hi" and first["version"] == "1.1" and first["level"] == 6
        assert (first["_container_name"], first["_image_name"]) == ("box", "busybox")
        assert (first["_color"], first["_SIZE"]) == ("red", "9")
        assert abs(first["timestamp"] - time.time()) < 60
        pieces = sorted(receiver.datagrams[1:], key=lambda piece: piece[10])
        assert {piece[:10] for piece in pieces} == {pieces[0][:10]} and pieces[0][:2] == b"\x1e\x0f"
        assert pieces[0][11] == len(pieces)
        whole = json.loads(gzip.decompress(b"".join(piece[12:] for piece in pieces)))
        assert len(whole["short_message"]) == 8000


def test_gelf_over_tcp(daemon: Daemon) -> None:
    with listening(socket.SOCK_STREAM) as receiver:
        given = options("gelf", gelf_address=f"tcp://127.0.0.1:{receiver.port}")
        daemon.docker("run", *given, "busybox", "sh", "-c", "echo one; echo two")
        until(lambda: receiver.stream.count(b"\0") == 2, "both messages arrive")
        texts = [json.loads(text)["short_message"] for text in receiver.stream.split(b"\0")[:2]]
        assert texts == ["one", "two"]


def events(data: bytes) -> list[dict[str, str]]:
    """The records in packets of the forward protocol."""
    found = []
    while data:
        end = len(data)
        try:
            msgspec.msgpack.decode(data)
        except msgspec.DecodeError as error:
            # MessagePack tells no length; the decoder tells where a packet ends and the next begins.
            more = re.search(r"trailing characters \(byte (\d+)\)", str(error))
            if more is None:
                break
            end = int(more[1])
        found += [record for _, record in msgspec.msgpack.decode(data[:end])[1]]
        data = data[end:]
    return found


def test_fluentd(daemon: Daemon) -> None:
    with listening(socket.SOCK_STREAM) as receiver:
        given = options("fluentd", fluentd_address=f"127.0.0.1:{receiver.port}", tag="t.{{.Name}}")
        script = "echo one; echo two >&2"
        container = daemon.docker("run", "-d", "--name", "box", *given, "busybox", "sh", "-c", script).stdout.strip()
        until(lambda: len(events(receiver.stream)) == 2, "both events arrive")
        common = {"container_id": container, "container_name": "/box"}
        assert sorted(events(receiver.stream), key=lambda event: event["log"]) == [
            {**common, "source": "stdout", "log": "one"},
            {**common, "source": "stderr", "log": "two"},
        ]
        assert b"t.box" in receiver.stream


@pytest.mark.skipif(os.path.exists("/run/systemd/journal/socket"), reason="this host has a journal")
def test_journald_needs_a_journal(daemon: Daemon) -> None:
    done = daemon.docker("run", *options("journald"), "busybox", "true", check=False)
    assert done.returncode == 125 or done.returncode == 128
    assert "failed to initialize logging driver: journald is not enabled on this host" in done.stderr


def test_without_its_receiver_a_container_does_not_start(daemon: Daemon) -> None:
    for driver, address in (
        ("fluentd", {"fluentd_address": "127.0.0.1:9"}),
        ("gelf", {"gelf_address": "tcp://127.0.0.1:9"}),
        ("syslog", {"syslog_address": "tcp://127.0.0.1:9"}),
    ):
        done = daemon.docker("run", *options(driver, **address), "busybox", "true", check=False)
        assert "failed to initialize logging driver: dial tcp 127.0.0.1:9: connect:" in done.stderr, done.stderr
    daemon.docker("run", *options("fluentd", fluentd_address="127.0.0.1:9", fluentd_async="true"), "busybox", "true")


def test_lines_wait_for_a_receiver_that_is_away(daemon: Daemon) -> None:
    with listening(socket.SOCK_STREAM) as receiver:
        port = receiver.port
        given = options("fluentd", fluentd_address=f"127.0.0.1:{port}")
        script = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.02; done"
        daemon.docker("run", "-d", "--name", "box", *given, "busybox", "sh", "-c", script)
        until(lambda: events(receiver.stream), "the first line arrives")
        seen = receiver.stream
    written = int(daemon.docker("logs", "--tail", "1", "box").stdout)
    until(lambda: int(daemon.docker("logs", "--tail", "1", "box").stdout) > written + 10, "nobody listens")
    with listening(socket.SOCK_STREAM, port) as receiver:
        until(lambda: len(events(receiver.stream)) > 20, "lines arrive again")
        daemon.docker("stop", "-t", "0", "box")
        last = int(daemon.docker("logs", "--tail", "1", "box").stdout)
        until(lambda: int(events(receiver.stream)[-1]["log"]) == last, "the last one arrives")
        numbers = [int(event["log"]) for event in events(seen) + events(receiver.stream)]
    # What was on its way when the receiver went is lost with it, unless it acknowledges.
    assert numbers == sorted(numbers) and len(numbers) > last - 5


def test_a_killed_daemon_goes_on_where_it_was(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    with listening(socket.SOCK_STREAM) as receiver:
        given = options("fluentd", fluentd_address=f"127.0.0.1:{receiver.port}")
        script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.01; done"
        started = daemon.docker("run", "-d", "--name", "box", *given, "busybox", "sh", "-c", script)
        container = started.stdout.strip()
        until(lambda: len(events(receiver.stream)) > 10, "some lines arrive")
        log = daemon.config.data_root / "containers" / container / "container.log"
        daemon.kill9()
        size = log.stat().st_size
        until(lambda: log.stat().st_size > size + 1000, "it writes on")
        daemon.start()
        until(lambda: events(receiver.stream)[-1]["log"] == "200", "the last line arrives")
        numbers = [int(event["log"]) for event in events(receiver.stream)]
        assert sorted(set(numbers)) == list(range(1, 201))
        assert len(numbers) < 300, "only the last half second may come twice"
        before = len(numbers)
        daemon.restart()
        daemon.docker("start", "-a", "box")
        until(lambda: len(events(receiver.stream)) >= before + 200, "the second run arrives")
        assert len(events(receiver.stream)) == before + 200


def test_what_an_automatically_removed_container_wrote_last_arrives(daemon: Daemon) -> None:
    with listening(socket.SOCK_STREAM) as receiver:
        given = options("fluentd", fluentd_address=f"127.0.0.1:{receiver.port}")
        daemon.docker("run", "--rm", *given, "busybox", "sh", "-c", "seq 500; printf end")
        until(lambda: len(events(receiver.stream)) == 501, "all lines arrive")
        assert events(receiver.stream)[-1]["log"] == "end"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"Type": "gelf"}, "gelf-address is a required parameter"),
        (
            {"Type": "gelf", "Config": {"gelf-address": "udp://x"}},
            "gelf: please provide gelf-address as proto://host:port",
        ),
        (
            {"Type": "syslog", "Config": {"syslog-address": "x"}},
            "syslog-address should be in form proto://address, got x",
        ),
        ({"Type": "syslog", "Config": {"syslog-facility": "x"}}, "invalid syslog facility"),
        ({"Type": "fluentd", "Config": {"fluentd-async": "x"}}, 'strconv.ParseBool: parsing "x": invalid syntax'),
        ({"Type": "journald", "Config": {"x": "y"}}, "unknown log opt 'x' for journald log driver"),
    ],
)
def test_options_are_checked_at_creation(daemon: Daemon, config: Any, message: str) -> None:
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": {"LogConfig": config}}
    answer = daemon.http("POST", "/containers/create", body)
    assert (answer.status, answer.message) == (400, message)
