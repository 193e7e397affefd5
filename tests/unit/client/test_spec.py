import pytest

from husk.client.spec import ContainerSpec, Healthcheck, Mount, document, size, words
from husk.errors import InvalidParameter


def said(**keywords):
    return document(ContainerSpec(image="busybox", **keywords))


def hosted(**keywords):
    return said(**keywords)["HostConfig"]


def test_what_nobody_said_is_not_sent():
    assert said() == {"Image": "busybox", "AttachStdout": True, "AttachStderr": True}


def test_a_zero_or_no_that_was_said_is_sent():
    made = said(init=False, stop_timeout=0)
    assert (made["HostConfig"]["Init"], made["StopTimeout"]) == (False, 0)


def test_a_command_of_one_string_is_taken_apart():
    assert words("sh -c 'echo a b'") == ["sh", "-c", "echo a b"]
    assert words(["a b"]) == ["a b"]
    assert words(None) is None


def test_environment_by_mapping_and_by_list():
    assert said(environment={"A": "1", "B": None})["Env"] == ["A=1", "B"]
    assert said(environment=["A=1"])["Env"] == ["A=1"]


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [(5, 5), ("64m", 64 << 20), ("1.5g", 3 << 29), ("10", 10), ("1kb", 1024), ("2GiB", 2 << 30), ("-1", -1)],
)
def test_sizes(text, bytes_):
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "m", "5x", "1 2", "-5m"])
def test_what_is_no_size(text):
    with pytest.raises(InvalidParameter, match="invalid size"):
        size(text)


def test_limits():
    found = hosted(memory="64m", cpus=1.5, pids_limit=10, ulimits={"nofile": (1, 2), "core": 0}, shm_size="1m")
    assert found == {
        "Memory": 64 << 20,
        "NanoCpus": 1_500_000_000,
        "PidsLimit": 10,
        "Ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}, {"Name": "core", "Soft": 0, "Hard": 0}],
        "ShmSize": 1 << 20,
    }


@pytest.mark.parametrize(
    ("where", "bindings"),
    [
        (8080, [("", "8080")]),
        ("8080-8090", [("", "8080-8090")]),
        (None, [("", "")]),
        (("127.0.0.1", 80), [("127.0.0.1", "80")]),
        (("::1", None), [("::1", "")]),
        ([1, ("127.0.0.1", 2)], [("", "1"), ("127.0.0.1", "2")]),
    ],
)
def test_ports(where, bindings):
    made = said(ports={80: where})
    assert made["ExposedPorts"] == {"80/tcp": {}}
    assert made["HostConfig"]["PortBindings"] == {
        "80/tcp": [{"HostIp": address, "HostPort": port} for address, port in bindings]
    }


def test_what_is_no_port():
    with pytest.raises(InvalidParameter, match=r"ports: 1.5 for 80/udp is no place"):
        said(ports={"80/udp": 1.5})


def test_mounts_and_devices():
    found = hosted(mounts=[Mount(target="/t", source="/s", read_only=True)], devices=["/dev/a", "/dev/a:/dev/b:r"])
    assert found["Mounts"] == [{"Type": "bind", "Source": "/s", "Target": "/t", "ReadOnly": True}]
    assert found["Devices"] == [
        {"PathOnHost": "/dev/a", "PathInContainer": "/dev/a", "CgroupPermissions": "rwm"},
        {"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "r"},
    ]


def test_restart_policies():
    assert hosted(restart="on-failure:3")["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    with pytest.raises(InvalidParameter, match="restart: 'always:x' is no policy"):
        hosted(restart="always:x")


def test_an_address_on_a_network():
    made = said(network="mine", ip="10.0.0.9", aliases=["db"])
    assert made["HostConfig"]["NetworkMode"] == "mine"
    assert made["NetworkingConfig"] == {
        "EndpointsConfig": {"mine": {"Aliases": ["db"], "IPAMConfig": {"IPv4Address": "10.0.0.9"}}}
    }


@pytest.mark.parametrize(
    ("test", "sent"),
    [
        ("curl x", ["CMD-SHELL", "curl x"]),
        (["curl", "x"], ["CMD", "curl", "x"]),
        (["CMD", "curl"], ["CMD", "curl"]),
        (None, ["NONE"]),
    ],
)
def test_health_checks(test, sent):
    found = said(healthcheck=Healthcheck(test=test, interval=0.5))["Healthcheck"]
    assert (found["Test"], found["Interval"]) == (sent, 500_000_000)


def test_fields_without_a_name_of_ours():
    made = said(extra_config={"MacAddress": "x"}, extra_host_config={"Isolation": "default"})
    assert (made["MacAddress"], made["HostConfig"]["Isolation"]) == ("x", "default")


def test_an_unknown_keyword_is_told():
    with pytest.raises(TypeError, match="memmory"):
        said(memmory="1g")


@pytest.mark.parametrize("text", ["²", "٣m", "9" * 400])
def test_a_size_or_a_count_of_odd_digits_is_refused(text):
    with pytest.raises(InvalidParameter):
        size(text)
    with pytest.raises(InvalidParameter):
        document(ContainerSpec(image="busybox", restart=f"on-failure:{text}"))
