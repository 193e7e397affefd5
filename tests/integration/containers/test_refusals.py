"""Containers that cannot be: every mistake in a request has its status and message, and nothing is made of it."""

from pathlib import Path
from typing import Any

import pytest

from husk.api.edge import missing
from tests.support.daemon import Answer, Daemon

JSON = {"Content-Type": "application/json"}


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


def test_deeply_nested_json_is_400(daemon: Daemon):
    assert create(daemon, b"[" * 100_000).status == 400
    assert create(daemon, b'{"a":' * 100_000).status == 400


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
