"""Clients that do not read: the container ends all the same, and its log has all that it wrote."""

from contextlib import ExitStack

import pytest

from tests.support.daemon import Daemon
from tests.support.lifecycle import create, ended, inspect, post, started, status
from tests.support.waiting import until
from tests.support.wire import RawClient, stream_of

UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp"}
# More than sockets and buffers on the way hold, and less than those and what is kept at the end.
MUCH = 1 << 20


def attached(daemon: Daemon, container: str, query: str = "stream=1&stdout=1&stderr=1") -> RawClient:
    client = RawClient(daemon.raw())
    client.request("POST", f"/containers/{container}/attach?{query}", headers=UPGRADE)
    assert client.head().status == 101
    return client


def executing(daemon: Daemon, container: str, *command: str) -> tuple[RawClient, str]:
    config = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(command)}
    exec_id = daemon.http("POST", f"/containers/{container}/exec", config).json()["Id"]
    client = RawClient(daemon.raw())
    headers = {**UPGRADE, "Content-Type": "application/json"}
    client.request("POST", f"/exec/{exec_id}/start", b"{}", headers)
    assert client.head().status == 101
    return client, exec_id


def _size(path: str) -> int:
    with open(path, "rb") as log:
        return log.seek(0, 2)


@pytest.mark.parametrize("end", ["stop?t=1", "kill", "remove"])
def test_an_attached_client_that_does_not_read_holds_no_end_up(daemon: Daemon, end: str):
    container = create(daemon, "sh", "-c", "cat /dev/zero")
    with attached(daemon, container):
        assert post(daemon, container, "start").status == 204
        until(lambda: _size(inspect(daemon, container)["LogPath"]) > MUCH, "it has written more than anybody holds")
        if end == "remove":
            assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204
            assert daemon.http("GET", f"/containers/{container}/json").status == 404
        else:
            assert post(daemon, container, end).status == 204
            assert ended(daemon, container) == 137


def test_twenty_clients_that_do_not_read_delay_an_end_no_more_than_one(daemon: Daemon):
    container = create(daemon, "sh", "-c", "cat /dev/zero")
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(attached(daemon, container))
        assert post(daemon, container, "start").status == 204
        until(lambda: _size(inspect(daemon, container)["LogPath"]) > MUCH, "it has written more than anybody holds")
        assert post(daemon, container, "stop?t=1").status == 204
        assert status(daemon, container) == "exited"


@pytest.mark.parametrize("end", ["stop?t=1", "kill", "remove"])
def test_an_exec_client_that_does_not_read_holds_no_end_up(daemon: Daemon, end: str):
    container = started(daemon)
    client, exec_id = executing(daemon, container, "cat", "/dev/zero")
    with client:
        assert client.socket.recv(1) == b"\x01"
        if end == "remove":
            assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204
        else:
            assert post(daemon, container, end).status == 204
            assert status(daemon, container) == "exited"
            until(lambda: not daemon.http("GET", f"/exec/{exec_id}/json").json()["Running"], "the exec has ended")


def test_a_container_ends_by_itself_while_its_client_does_not_read(daemon: Daemon):
    script = f"head -c {MUCH} /dev/zero | tr '\\0' x; head -c {MUCH // 4} /dev/zero | tr '\\0' y; exit 3"
    container = create(daemon, "sh", "-c", script)
    with attached(daemon, container) as client:
        assert post(daemon, container, "start").status == 204
        assert ended(daemon, container) == 3
        assert stream_of(client.read_to_end(), 1) == b"x" * MUCH + b"y" * (MUCH // 4)
    logged = stream_of(daemon.http("GET", f"/containers/{container}/logs?stdout=1").body, 1)
    assert logged == b"x" * MUCH + b"y" * (MUCH // 4)


def test_a_removed_container_is_gone_for_a_client_that_never_read(daemon: Daemon):
    """It is told under the container's lock: nothing may wait for the client there."""
    container = create(daemon, "true")
    with attached(daemon, container) as client:
        assert daemon.http("DELETE", f"/containers/{container}").status == 204
        assert client.read_to_end() == b""


# --- logs and stream in one


def test_logs_and_the_stream_of_a_fast_writer_have_every_line_once(daemon: Daemon):
    script = "n=0; while [ ! -e /enough ]; do seq $((n * 100)) $((n * 100 + 99)); n=$((n + 1)); done"
    container = started(daemon, "sh", "-c", script)
    until(lambda: _size(inspect(daemon, container)["LogPath"]) > 0, "it writes")
    with ExitStack() as open_clients:
        clients = [
            open_clients.enter_context(attached(daemon, container, "logs=1&stream=1&stdout=1&stderr=1"))
            for _ in range(8)
        ]
        # The container may end, and take this process with it, before it has said that all went well.
        daemon.docker("exec", container, "touch", "/enough", check=False)
        assert ended(daemon, container) == 0
        wanted = stream_of(daemon.http("GET", f"/containers/{container}/logs?stdout=1").body, 1)
        assert wanted.splitlines() == [b"%d" % n for n in range(wanted.count(b"\n"))]
        for client in clients:
            assert stream_of(client.read_to_end(), 1) == wanted


def test_logs_and_the_stream_of_one_that_is_started_later(daemon: Daemon):
    container = started(daemon, "sh", "-c", "echo again")
    ended(daemon, container)
    with attached(daemon, container, "logs=1&stream=1&stdout=1") as client:
        assert post(daemon, container, "start").status == 204
        assert stream_of(client.read_to_end(), 1) == b"again\nagain\n"


def test_input_reaches_a_container_whose_log_is_followed(daemon: Daemon):
    container = started(daemon, "cat", OpenStdin=True, StdinOnce=True)
    with attached(daemon, container, "logs=1&stream=1&stdin=1&stdout=1") as client:
        client.socket.sendall(b"one\ntwo")
        client.half_close()
        assert stream_of(client.read_to_end(), 1).replace(b"\n", b"") == b"onetwo"
