"""Paths, methods, versions and headers: what is asked for under another name than the API has, and what comes back."""

import json

import pytest

from tests.support.daemon import Daemon
from tests.support.wire import RawClient

TOO_OLD = "Minimum supported API version is 1.24, please upgrade your client to a newer version"
COMMON_HEADERS = {"Api-Version": "1.55", "Docker-Experimental": "false", "Ostype": "linux"}


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


def test_docker_inspect_of_nothing(daemon: Daemon):
    done = daemon.docker("inspect", "nobody", check=False)
    assert (done.returncode, done.stdout.strip()) == (1, "[]")
    assert done.stderr.strip().lower() == "error: no such object: nobody"


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
