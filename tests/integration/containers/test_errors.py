"""What a client can do wrong: every mistake has its status and message, and none costs the daemon anything."""

import contextlib
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from husk.api import missing
from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient

JSON = {"Content-Type": "application/json"}
TOO_OLD = "Minimum supported API version is 1.24, please upgrade your client to a newer version"
COMMON_HEADERS = {"Api-Version": "1.55", "Docker-Experimental": "false", "Ostype": "linux"}


def create(daemon: Daemon, body: object = None, headers: dict[str, str] | None = None) -> Answer:
    return daemon.http("POST", "/containers/create", body, headers)


def count(daemon: Daemon) -> int:
    return len(daemon.http("GET", "/containers/json?all=1").json())


# --- bodies


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"Image": "busybox",}',
        b"not json",
        b'{"Image": "busybox"',
        b"\xff\xfe",
        b'{"Image": "\xff"}',
        b"   ",
        b'{"Image": NaN}',
    ],
)
def test_malformed_json_is_400(daemon: Daemon, body: bytes):
    answer = create(daemon, body)
    assert (answer.status, answer.message.startswith("invalid JSON")) == (400, True), answer.body
    assert count(daemon) == 0


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"true", b"[{}]"])
def test_a_body_that_is_no_object_is_400(daemon: Daemon, body: bytes):
    assert create(daemon, body).status == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"Image": 5},
        {"Image": ["busybox"]},
        {"Env": "A=1"},
        {"Env": [1]},
        {"Cmd": 5},
        {"Cmd": [["x"]]},
        {"Tty": "yes"},
        {"Labels": ["a"]},
        {"Labels": {"a": 1}},
        {"StopTimeout": "5"},
        {"HostConfig": []},
        {"HostConfig": {"Memory": "lots"}},
        {"HostConfig": {"Memory": 1.5}},
        {"HostConfig": {"Memory": 2**70}},
        {"HostConfig": {"Binds": "/a:/b"}},
        {"HostConfig": {"Privileged": 1}},
        {"HostConfig": {"RestartPolicy": "always"}},
        {"NetworkingConfig": {"EndpointsConfig": []}},
    ],
)
def test_wrong_types_are_400(daemon: Daemon, fields: dict[str, Any]):
    answer = create(daemon, {"Image": "busybox", "Cmd": ["true"], **fields})
    assert (answer.status, bool(answer.message)) == (400, True), answer.body
    assert count(daemon) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"Image": ""},
        {"Image": "UPPER/Case"},
        {"Image": "a b"},
        {"Env": ["=x"]},
        {"Env": ["A=\0"]},
        {"Cmd": ["a\0b"]},
        {"Hostname": "not a name"},
        {"WorkingDir": "relative"},
        {"StopSignal": "SIGNONSENSE"},
        {"ExposedPorts": {"http": {}}},
        {"HostConfig": {"Memory": 1000}},
        {"HostConfig": {"Memory": -5}},
        {"HostConfig": {"NanoCpus": 10**15}},
        {"HostConfig": {"NanoCpus": 10**9, "CpuQuota": 5000}},
        {"HostConfig": {"CpuShares": -1}},
        {"HostConfig": {"CpusetCpus": "4096"}},
        {"HostConfig": {"CpusetCpus": "x"}},
        {"HostConfig": {"RestartPolicy": {"Name": "sometimes"}}},
        {"HostConfig": {"RestartPolicy": {"Name": "always", "MaximumRetryCount": 3}}},
        {"HostConfig": {"CapAdd": ["NONSENSE"]}},
        {"HostConfig": {"Binds": ["/a:relative"]}},
        {"HostConfig": {"Binds": ["/a:/"]}},
        {"HostConfig": {"Binds": ["/a:/b:nonsense"]}},
        {"HostConfig": {"Binds": ["/a:/b", "/c:/b"]}},
        {"HostConfig": {"Tmpfs": {"relative": ""}}},
        {"HostConfig": {"Dns": ["not an address"]}},
        {"HostConfig": {"ExtraHosts": ["nonsense"]}},
        {"HostConfig": {"PidMode": "nonsense"}},
        {"HostConfig": {"LogConfig": {"Type": "nonsense"}}},
        {"HostConfig": {"OomScoreAdj": 5000}},
        {"HostConfig": {"ShmSize": -1}},
        {"HostConfig": {"Runtime": "nonsense"}},
    ],
)
def test_wrong_values_are_400(daemon: Daemon, fields: dict[str, Any]):
    answer = create(daemon, {"Image": "busybox", "Cmd": ["true"], **fields})
    assert (answer.status, bool(answer.message)) == (400, True), answer.body
    assert count(daemon) == 0


@pytest.mark.parametrize(
    ("host_config", "words"),
    [
        ({"Ulimits": [{"Name": "nonsense", "Soft": 1, "Hard": 1}]}, "nonsense"),
        ({"Ulimits": [{"Name": "nofile", "Soft": 5, "Hard": 1}]}, "hard limit"),
        ({"Sysctls": {"kernel.panic": "1"}}, "kernel.panic"),
        ({"Sysctls": {"net.core.somaxconn": "1"}, "NetworkMode": "host"}, "net.core.somaxconn"),
        ({"Sysctls": {"../../x": "1"}}, "../../x"),
    ],
)
def test_what_the_runtime_would_refuse_is_400(daemon: Daemon, host_config: dict[str, Any], words: str):
    before = Path("/proc/sys/kernel/panic").read_text(), Path("/proc/sys/net/core/somaxconn").read_text()
    answer = create(daemon, {"Image": "busybox", "Cmd": ["true"], "HostConfig": host_config})
    assert (answer.status, words in answer.message) == (400, True), answer.body
    assert (Path("/proc/sys/kernel/panic").read_text(), Path("/proc/sys/net/core/somaxconn").read_text()) == before


def test_no_body_is_400(daemon: Daemon):
    assert create(daemon).status == 400
    assert create(daemon, b"", JSON).status == 400


def test_nothing_to_make_is_400(daemon: Daemon):
    for body in (b"{}", b'{"HostConfig": {}}'):
        answer = create(daemon, body)
        assert (answer.status, answer.message.lower()) == (
            400,
            "config cannot be empty in order to create a container",
        ), body


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_content_type_must_be_json(daemon: Daemon, content_type: str):
    answer = create(daemon, b'{"Image": "busybox"}', {"Content-Type": content_type})
    assert (answer.status, "Content-Type" in answer.message) == (400, True), answer.body


def test_content_type_may_have_parameters(daemon: Daemon):
    assert create(daemon, b'{"Image": "busybox"}', {"Content-Type": "application/json; charset=utf-8"}).status == 201


def test_go_reads_json_generously_and_so_do_we(daemon: Daemon):
    body = b'{"image": "busybox", "CMD": "true", "Unknown": [1], "Env": null, "HostConfig": {"Binds": null, "x": 1}}'
    assert create(daemon, body).status == 201


# --- what Husk cannot do yet


@pytest.mark.parametrize(
    "host_config",
    [
        {"LogConfig": {"Type": "awslogs"}},
        {"NetworkMode": "ns:/run/netns/x"},
    ],
)
def test_values_that_are_missing_are_501_and_create_nothing(daemon: Daemon, host_config: dict[str, Any]):
    answer = create(daemon, {"Image": "busybox", "Cmd": ["true"], "HostConfig": host_config})
    assert (answer.status, "not implemented" in answer.message) == (501, True), answer.body
    assert count(daemon) == 0


def test_operations_that_are_missing_are_501(daemon: Daemon):
    for route in missing.ROUTES:
        answer = daemon.http(route.method, route.pattern.replace("{id}", "x").replace("{name}", "x"))
        assert answer.status == 501, route
        if route.method != "HEAD":
            assert answer.message == f"{route.method} {route.pattern} is not implemented by Husk yet"


# --- paths, methods, versions


@pytest.mark.parametrize(
    "path",
    ["/", "/nothing", "/v1.41/nothing", "/containers", "/containers/", "/containers/x/nothing", "/v1.41", "/%00"],
)
def test_an_unknown_path_is_404(daemon: Daemon, path: str):
    answer = daemon.http("GET", path)
    assert (answer.status, answer.message) == (404, "page not found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/info"),
        ("PUT", "/containers/json"),
        ("PUT", "/containers/x/start"),
        ("GET", "/containers/create"),
        ("PATCH", "/_ping"),
    ],
)
def test_a_path_under_another_method_is_no_page(daemon: Daemon, method: str, path: str):
    answer = daemon.http(method, path)
    assert (answer.status, answer.message) == (404, "page not found")


@pytest.mark.parametrize(
    ("asked", "told"),
    [("//_ping?x=1", "/_ping?x=1"), ("/containers/a%2F%2Fb/json", "/containers/a/b/json"), ("/../info", "/info")],
)
def test_a_path_with_doubled_slashes_or_dots_is_told_the_clean_one(daemon: Daemon, asked: str, told: str):
    answer = daemon.http("GET", asked)
    assert (answer.status, answer.headers["Location"], answer.body) == (301, told, b"")


def test_networks_are_listed_with_a_slash_at_the_end_too(daemon: Daemon):
    for path in ("/networks/", "/v1.44/networks/"):
        assert {network["Name"] for network in daemon.http("GET", path).json()} == {"bridge", "host", "none"}
    assert daemon.http("GET", "/version/").status == 404


def test_options_are_answered_with_nothing(daemon: Daemon):
    answer = daemon.http("OPTIONS", "/anything")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        (("application/json", "application/json"), 201),
        (("application/json", "text/plain"), 201),
        (("text/plain", "application/json"), 400),
    ],
)
def test_of_a_content_type_said_twice_the_first_counts(daemon: Daemon, kinds: tuple[str, str], status: int):
    body = b'{"Image": "busybox"}'
    head = ["POST /containers/create HTTP/1.1", "Host: d", "Connection: close", "User-Agent: a", "User-Agent: b"]
    head += [f"Content-Type: {kind}" for kind in kinds]
    with daemon.raw() as channel:
        channel.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        answer = b"".join(iter(lambda: channel.recv(1 << 16), b""))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer


@pytest.mark.parametrize("upgrade", [{}, {"Connection": "Upgrade", "Upgrade": "tcp"}])
def test_a_refused_attach_says_why_in_plain_text_and_hangs_up(daemon: Daemon, upgrade: dict[str, str]):
    answer = daemon.http("POST", "/containers/nobody/attach?stream=1&stdout=1", headers=upgrade)
    assert (answer.status, answer.body) == (404, b"No such container: nobody\r\n")
    assert answer.headers["Content-Type"] == "application/vnd.docker.raw-stream"
    assert answer.headers["Connection"] == "close"


@pytest.mark.parametrize("body", [b"this is no archive", b"", b"\x1f\x8bneither is this", bytes(10240)])
def test_a_load_of_what_is_no_archive_fails_in_its_stream(daemon: Daemon, body: bytes):
    answer = daemon.http("POST", "/images/load", body, {"Content-Type": "application/x-tar"})
    assert answer.status == 200
    told = answer.json()
    assert told["error"] and told["errorDetail"]["message"] == told["error"]
    refused = daemon.docker_bytes("load", input=body, check=False)
    assert refused.returncode == 1


@pytest.mark.parametrize("version", [f"v1.{minor}" for minor in range(24, 56)])
def test_every_served_version(daemon: Daemon, version: str):
    assert daemon.http("GET", f"/{version}/_ping").body == b"OK"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.23", "client version 1.23 is too old. " + TOO_OLD),
        ("1.1", "client version 1.1 is too old. " + TOO_OLD),
        ("1.56", "client version 1.56 is too new. Maximum supported API version is 1.55"),
        ("1.99", "client version 1.99 is too new. Maximum supported API version is 1.55"),
        ("2.0", "client version 2.0 is too new. Maximum supported API version is 1.55"),
    ],
)  # fmt: skip
def test_versions_out_of_range(daemon: Daemon, version: str, message: str):
    for path in ("info", "_ping", "containers/json"):
        answer = daemon.http("GET", f"/v{version}/{path}")
        assert (answer.status, answer.message) == (400, message)


@pytest.mark.parametrize("version", ["vx.y", "v1.x", "v-1.40", "version1.40", "v"])
def test_what_is_no_version_is_404(daemon: Daemon, version: str):
    assert daemon.http("GET", f"/{version}/info").status == 404


def test_huge_version_numbers_are_400(daemon: Daemon):
    assert daemon.http("GET", f"/v1.{'9' * 5000}/info").status in (400, 414)


# --- headers


@pytest.mark.parametrize(
    "host", ["docker", "localhost", "api.moby.localhost", "1.2.3.4:99", "", "any thing", "%2Fvar%2Frun"]
)
def test_any_host_header(daemon: Daemon, host: str):
    with RawClient(daemon.raw()) as client:
        client.request("GET", "/_ping", host=host)
        assert client.head().status == 200


def test_no_host_header_at_all(daemon: Daemon):
    with RawClient(daemon.raw()) as client:
        client.socket.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
        assert client.head().status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/_ping"),
        ("HEAD", "/_ping"),
        ("GET", "/version"),
        ("GET", "/containers/json"),
        ("GET", "/containers/none/json"),
        ("GET", "/nothing"),
        ("POST", "/info"),
        ("GET", "/v1.99/info"),
        ("POST", "/containers/create"),
        ("GET", "/swarm"),
        ("GET", "/events?until=1"),
    ],
)
def test_headers_on_every_response(daemon: Daemon, method: str, path: str):
    headers = daemon.http(method, path).headers
    assert {name: headers.get(name) for name in COMMON_HEADERS} == COMMON_HEADERS
    assert headers["Server"].startswith("Husk/") and headers["Server"].endswith("(linux)")


def test_errors_are_json(daemon: Daemon):
    for path in ("/nothing", "/containers/none/json", "/v1.99/info"):
        answer = daemon.http("GET", path)
        assert answer.headers["Content-Type"] == "application/json"
        assert set(answer.json()) == {"message"}


# --- bytes that no client sends


HOSTILE = [
    b"garbage\r\n\r\n",
    b"\x00\xff\xfe\x16\x03\x01\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # a TLS client
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2_000_000 + b"\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(50_000)) + b"\r\n",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{}",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"",
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:24]))
def test_hostile_bytes_do_not_kill_the_daemon(daemon: Daemon, data: bytes):
    with RawClient(daemon.raw(10)) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.socket.sendall(data)
        client.half_close()
        answer = client.read_to_end()
        assert not answer or answer.split()[1] in (b"400", b"404", b"405", b"413", b"414", b"431", b"505"), answer[:300]
    assert daemon.http("GET", "/_ping").body == b"OK"


def test_a_huge_body_is_refused(daemon: Daemon):
    with RawClient(daemon.raw(20)) as client:
        head = b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: 100000000\r\n\r\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.socket.sendall(head + b" " * 100_000_000)
        with contextlib.suppress(ConnectionResetError):
            assert client.head().status in (400, 413)
    assert daemon.http("GET", "/_ping").body == b"OK"


def test_deeply_nested_json_is_400(daemon: Daemon):
    assert create(daemon, b"[" * 100_000).status == 400
    assert create(daemon, b'{"a":' * 100_000).status == 400


def test_half_a_request_holds_nobody_up(daemon: Daemon):
    clients = [RawClient(daemon.raw()) for _ in range(50)]
    for client in clients:
        client.socket.sendall(b"POST /containers/create HTTP/1.1\r\nHost:")
    assert daemon.http("GET", "/_ping").body == b"OK"
    for client in clients:
        client.close()


def test_several_requests_on_one_connection(daemon: Daemon):
    with RawClient(daemon.raw()) as client:
        client.socket.sendall(b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for _ in range(3):
            assert client.head().status == 200
            assert client.read_until(b"OK") == b"OK"


def test_clients_that_leave_leave_no_descriptor(daemon: Daemon):
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    daemon.http("GET", "/_ping")
    before = descriptors()
    container = create(daemon, {"Image": "busybox", "Cmd": ["sleep", "1000"]}).json()["Id"]
    for path in (
        f"/containers/{container}/wait?condition=next-exit",
        f"/containers/{container}/attach?stream=1&stdout=1",
    ):
        for _ in range(10):
            with RawClient(daemon.raw()) as client:
                client.request("POST", path)
                client.head()
    for _ in range(10):
        with RawClient(daemon.raw()) as client:
            client.request("GET", "/events")
            client.head()
    until(lambda: descriptors() <= before + 1, "all descriptors are closed")


def test_a_crowd_of_clients(daemon: Daemon):
    wrong: list[int] = []

    def ask() -> None:
        for _ in range(20):
            if (status := daemon.http("GET", "/containers/json?all=1").status) != 200:
                wrong.append(status)

    threads = [threading.Thread(daemon=True, target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("query", ["limit=x", "limit=1e3"])
def test_wrong_numbers_are_400(daemon: Daemon, query: str):
    assert daemon.http("GET", f"/containers/json?{query}").status == 400


def test_a_container_id_is_never_a_path(daemon: Daemon):
    for reference in ("..", "%2e%2e%2f%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "a%0ab"):
        answer = daemon.http("GET", f"/containers/{reference}/json")
        if answer.status == 301:
            assert answer.headers["Location"] in ("/json", "/etc/passwd/json"), "no more than a path of the API"
            answer = daemon.http("GET", answer.headers["Location"])
        assert answer.status in (400, 404), answer.body
        assert "message" in json.loads(answer.body)


def test_the_socket_is_not_for_everybody(daemon: Daemon):
    assert daemon.socket_path.stat().st_mode & 0o777 == 0o660
    assert isinstance(daemon.raw(), socket.socket)


def test_docker_inspect_of_nothing(daemon: Daemon):
    done = daemon.docker("inspect", "nobody", check=False)
    assert (done.returncode, done.stdout.strip()) == (1, "[]")
    assert done.stderr.strip().lower() == "error: no such object: nobody"
