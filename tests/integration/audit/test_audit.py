"""A real daemon's audit log: who changed what, by every door, with the result, and rotated under its feet."""

import asyncio
import http.client
import json
import os
import re
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from husk.rpc.grpc.connection import GrpcConnection
from tests.support.certificates import Authority, Pair
from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, new_link
from tests.support.remote import Remote, address, tls_daemon
from tests.support.waiting import until

SECRET = "hunter2"


class Audited:
    """A daemon that keeps an audit log, with a client certificate for it."""

    def __init__(self, daemon: Daemon, path: Path, pair: Pair) -> None:
        self.daemon = daemon
        self.path = path
        self.remote = Remote(daemon, pair)

    def lines(self, path: Path | None = None) -> list[dict[str, Any]]:
        text = (path or self.path).read_text()
        assert text == "" or text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def line(self, **wanted: object) -> dict[str, Any]:
        """The one line that has these values, when it is written."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines() if wanted.items() <= line.items()]

        (only,) = until(found, f"a line with {wanted}")
        return only


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    directory = tmp_path_factory.mktemp("audit")
    authority = Authority(directory)
    path = directory / "audit.json"
    with tls_daemon(directory, authority, "--audit-log", str(path), "--dashboard", "127.0.0.1:0") as daemon:
        until(lambda: "Husk listens on tcp" in daemon.log_path.read_text(), "the daemon says where it listens")
        yield Audited(daemon, path, authority.issue("client"))


def test_changes_by_the_socket_name_the_process(audited: Audited) -> None:
    docker = audited.daemon.docker("create", "--name", "one", "-e", f"PASSWORD={SECRET}", "busybox", "true")
    assert docker.returncode == 0
    made = audited.line(route="/containers/create", object="one")
    assert (made["status"], made["who"]["uid"], made["who"]["gid"]) == (201, os.getuid(), os.getgid())
    assert made["who"]["pid"] not in (audited.daemon.pid, 0)
    assert made["query"]["name"] == "one"
    answer = audited.daemon.http("POST", "/containers/nope/start", headers={"X-Request-Id": "mine"})
    failed = audited.line(request_id="mine")
    assert (failed["status"], failed["error"], failed["object"]) == (404, answer.message, "nope")
    assert failed["who"]["pid"] == os.getpid()
    assert stat.S_IMODE(audited.path.stat().st_mode) == 0o600


def test_attach_and_exec_are_told_at_their_end_and_reading_is_not(audited: Audited) -> None:
    audited.daemon.docker("run", "--name", "attached", "busybox", "echo", "hi")
    audited.daemon.docker("run", "-d", "--name", "two", "busybox", "sleep", "600")
    audited.daemon.docker("exec", "two", "true")
    audited.daemon.docker("ps", "-a")
    assert audited.line(route="/exec/{id}/start")["status"] in (101, 200)
    assert [line for line in audited.lines() if line["route"] == "/containers/{id}/attach"]
    assert not [line for line in audited.lines() if line["method"] in ("GET", "HEAD")]


def test_no_secret_of_a_build_or_a_login_is_told(audited: Audited, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM busybox\nARG KEY\n")
    arguments = json.dumps({"KEY": SECRET})
    target = f"/build?t=made&dockerfile=Dockerfile&buildargs={arguments.replace(' ', '')}".replace('"', "%22")
    audited.daemon.http("POST", target, headers={"X-Registry-Config": SECRET, "X-Request-Id": "built"})
    assert audited.line(request_id="built")["query"]["buildargs"] == "(hidden)"
    audited.daemon.docker("build", "-q", "--build-arg", f"KEY={SECRET}", "-t", "made", str(tmp_path))
    # By the classic API, or by BuildKit's protocol where the client has it.
    doors = ("/build", "/session", "/grpc")
    until(lambda: len([line for line in audited.lines() if line["route"] in doors]) > 1, "the build is told")
    assert SECRET not in audited.path.read_text()


def test_what_fails_in_the_middle_of_an_answer_is_told(audited: Audited) -> None:
    target = "/images/create?fromImage=127.0.0.1:1/nothing&tag=x"
    audited.daemon.http("POST", target, headers={"X-Request-Id": "pulled"})
    told = audited.line(request_id="pulled")
    assert told["object"] == "127.0.0.1:1/nothing" and told["error"]


def test_a_client_over_tls_is_told_by_its_certificate(audited: Audited) -> None:
    audited.remote.docker("volume", "create", "far")
    made = until(lambda: [line for line in audited.lines() if "certificate" in line["who"]], "the line")[-1]
    assert made["who"] == {"address": "127.0.0.1", "certificate": "CN=client"}
    assert (made["route"], made["status"]) == ("/volumes/create", 201)


class Stream:
    """The bytes of a connection, as HTTP/2 wants them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(1 << 16)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.close()


async def ask_in_http2(stream: Stream) -> None:
    """As buildx does with a builder that it knows by its address alone: HTTP/2 from the first byte."""
    async with GrpcConnection(stream, client=True) as connection:
        assert await connection.unary("/moby.buildkit.v1.Control/Info", b"")


async def test_http2_from_the_first_byte_is_told_by_its_client(audited: Audited) -> None:
    before = len(audited.lines())

    def told() -> dict[str, Any]:
        (line,) = until(lambda: [each for each in audited.lines()[before:] if each["method"] == "PRI"], "the line")
        return line

    await ask_in_http2(Stream(*await asyncio.open_unix_connection(audited.daemon.host.removeprefix("unix://"))))
    line = await asyncio.to_thread(told)
    assert (line["route"], line["status"], line["who"]["pid"]) == ("/grpc", 200, os.getpid())
    before = len(audited.lines())
    pair, (host, port) = audited.remote.pair, audited.remote.host.removeprefix("tcp://").split(":")
    tls = ssl.create_default_context(cafile=pair.ca)
    tls.load_cert_chain(pair.cert, pair.key)
    await ask_in_http2(Stream(*await asyncio.open_connection(host, int(port), ssl=tls)))
    assert (await asyncio.to_thread(told))["who"] == {"address": "127.0.0.1", "certificate": "CN=client"}


async def test_a_client_over_plain_tcp_is_told_by_its_address(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    with Daemon("-H", "tcp://127.0.0.1:0", "--audit-log", str(path)) as daemon:
        until(lambda: "Husk listens on tcp" in daemon.log_path.read_text(), "the daemon says where it listens")
        host, port = address(daemon).removeprefix("tcp://").split(":")
        plain = http.client.HTTPConnection(host, int(port))
        plain.request("POST", "/containers/nope/start", headers={"X-Husk-Visitor": "somebody else"})
        assert plain.getresponse().status == 404
        plain.close()
        await ask_in_http2(Stream(*await asyncio.open_connection(host, int(port))))
        until(lambda: path.read_text().count("\n") == 2, "both lines")
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["route"], first["status"], first["who"]) == ("/containers/{id}/start", 404, {"address": "127.0.0.1"})
    assert (second["route"], second["method"], second["who"]) == ("/grpc", "PRI", {"address": "127.0.0.1"})


def test_the_dashboard_is_told_by_its_browser(audited: Audited) -> None:
    audited.daemon.docker("run", "-d", "--name", "seen", "busybox", "sleep", "600")
    browser = Browser(new_link(audited.daemon), audited.remote.pair.ca)
    browser.sign_in()
    answer = browser.post("/containers/seen/kill")
    told = audited.line(route="/containers/{id}/kill")
    assert re.fullmatch(r"127\.0\.0\.1 session [0-9a-f]{12}", told["who"]["dashboard"])
    assert told["request_id"] == answer.headers["x-request-id"]
    # Who is not the dashboard cannot say that it is.
    audited.daemon.http("POST", "/containers/nope/kill", headers={"X-Husk-Visitor": "x", "X-Request-Id": "false"})
    assert "dashboard" not in audited.line(request_id="false")["who"]


def test_powers_over_the_host_are_told_as_they_were_understood(audited: Audited) -> None:
    options = ["-v", "/etc/../:/host", "--cap-add", "sys_admin", "--device", "/dev/null:/dev/x", "--pid", "host"]
    audited.daemon.docker("run", "-d", "--name", "strong", "--privileged", *options, "busybox", "sleep", "600")
    asked = audited.line(route="/containers/create", object="strong")["asked"]
    assert (asked["Privileged"], asked["PidMode"], asked["CapAdd"]) == (True, "host", ["CAP_SYS_ADMIN"])
    assert [mount["Source"] for mount in asked["Mounts"]] == ["/"]
    assert asked["Devices"][0]["PathInContainer"] == "/dev/x"
    audited.daemon.docker("exec", "--privileged", "-u", "0", "strong", "true")
    made = audited.line(route="/containers/{id}/exec", object="strong")["asked"]
    assert (made["Container"], made["User"], made["Privileged"]) == (asked["Id"], "0", True)
    assert audited.line(route="/exec/{id}/start", object=made["Id"])["asked"] == made


def test_sighup_opens_the_file_anew(audited: Audited) -> None:
    old = audited.path.with_suffix(".1")
    audited.path.rename(old)
    before = len(audited.lines(old))
    audited.daemon.http("POST", "/containers/nope/start", headers={"X-Request-Id": "old"})
    until(lambda: len(audited.lines(old)) == before + 1, "the line in the old file")
    audited.daemon.reload()
    until(audited.path.exists, "the new file")
    audited.daemon.http("POST", "/containers/nope/start", headers={"X-Request-Id": "new"})
    audited.line(request_id="new")
    assert len(audited.lines(old)) == before + 1


def test_a_file_that_cannot_be_opened_keeps_the_daemon_from_starting(tmp_path: Path) -> None:
    daemon = Daemon("--audit-log", str(tmp_path))
    try:
        with pytest.raises(AssertionError, match=r"cannot open the audit log .*: Is a directory.* with --audit-log"):
            daemon.start()
        assert "Traceback" not in daemon.log()
    finally:
        daemon.arguments = ()
        daemon.close()
