"""Containers in the words of Compose: what differs from their image, and YAML that Compose reads back."""

from typing import Any

import msgspec
import pytest
import yaml

from husk.cli.migrate.compose import _NO_SETTING, Surroundings, compose, written
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HealthConfig, HostConfig, Mount

IMAGE = {"Config": {"Cmd": ["serve"], "Env": ["PATH=/bin"], "WorkingDir": "/app", "Labels": {"of": "image"}}}


def box(config: dict[str, Any] | None = None, host: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    usual = {"Image": "app:1", "Cmd": ["serve"], "Env": ["PATH=/bin"], "WorkingDir": "/app", "Hostname": "0123456789ab"}
    return {
        "Id": "0123456789abcdef",
        "Name": "/web",
        "Image": "sha256:1",
        "Config": {**usual, **(config or {})},
        "HostConfig": {"RestartPolicy": {"Name": "no"}, "IpcMode": "private", "NetworkMode": "bridge", **(host or {})},
        **more,
    }


NOWHERE = Surroundings()


def service(*args: Any, around: Surroundings = NOWHERE, **more: Any) -> dict[str, Any]:
    found = compose([box(*args, **more)], {"sha256:1": IMAGE}, around)
    one: dict[str, Any] = found.document["services"]["web"]
    return one


def lost(*args: Any, around: Surroundings = NOWHERE, **more: Any) -> list[str]:
    return compose([box(*args, **more)], {"sha256:1": IMAGE}, around).lost.get("web", [])


def test_what_is_the_images_is_not_written() -> None:
    assert service() == {"image": "app:1", "container_name": "web", "network_mode": "bridge"}


def test_what_differs_is_written() -> None:
    config = {
        "Cmd": ["other"],
        "Entrypoint": ["/run"],
        "Env": ["PATH=/bin", "A=1"],
        "User": "bob",
        "Hostname": "box",
        "Tty": True,
        "Labels": {"of": "image", "mine": "1", "com.docker.compose.project": "p"},
    }
    found = service(config)
    assert (found["command"], found["entrypoint"], found["environment"]) == (["other"], ["/run"], ["A=1"])
    assert (found["user"], found["hostname"], found["tty"], found["labels"]) == ("bob", "box", True, {"mine": "1"})
    assert "working_dir" not in found


def test_settings_of_the_host() -> None:
    host = {
        "CapAdd": ["NET_ADMIN"],
        "Memory": 1024,
        "NanoCpus": 500_000_000,
        "Privileged": True,
        "IpcMode": "host",
        "Tmpfs": {"/t": "size=1m", "/u": ""},
        "Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "rw"}],
    }
    found = service(None, host)
    assert (found["cap_add"], found["mem_limit"], found["cpus"], found["privileged"]) == (
        ["NET_ADMIN"],
        1024,
        0.5,
        True,
    )
    assert (found["ipc"], found["tmpfs"], found["devices"]) == ("host", ["/t:size=1m", "/u"], ["/dev/a:/dev/b:rw"])


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        ({"Name": "always"}, "always"),
        ({"Name": "on-failure", "MaximumRetryCount": 3}, "on-failure:3"),
        ({"Name": "on-failure"}, "on-failure"),
    ],
)
def test_restarts(policy: dict[str, Any], word: str) -> None:
    assert service(None, {"RestartPolicy": policy})["restart"] == word


@pytest.mark.parametrize(
    ("bindings", "ports"),
    [
        ({"80/tcp": [{"HostPort": "8080"}]}, ["8080:80/tcp"]),
        ({"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}]}, ["8080:80/tcp"]),
        ({"53/udp": [{"HostIp": "127.0.0.1", "HostPort": "53"}]}, ["127.0.0.1:53:53/udp"]),
        ({"80/tcp": [{"HostIp": "::1", "HostPort": "1"}]}, ["[::1]:1:80/tcp"]),
        ({"80/tcp": [{"HostPort": ""}], "81/tcp": None}, ["80/tcp"]),
    ],
)
def test_ports(bindings: dict[str, Any], ports: list[str]) -> None:
    assert service(None, {"PortBindings": bindings})["ports"] == ports


def test_mounts() -> None:
    mounts = [
        {"Type": "volume", "Name": "data", "Destination": "/d", "RW": True},
        {"Type": "bind", "Source": "/srv", "Destination": "/s", "RW": False},
        {"Type": "tmpfs", "Destination": "/t"},
    ]
    found = compose([box(Mounts=mounts)], {}, Surroundings()).document
    assert found["services"]["web"]["volumes"] == [
        {"type": "volume", "source": "data", "target": "/d"},
        {"type": "bind", "source": "/srv", "target": "/s", "read_only": True},
    ]
    assert found["volumes"] == {"data": {"external": True}}


def test_networks() -> None:
    settings = {"Networks": {"inner": {"Aliases": ["0123456789ab", "web", "db"]}, "bridge": {}, "lost": None}}
    found, missing = compose([box(NetworkSettings=settings)], {}, Surroundings({"inner": []}))
    assert found["services"]["web"]["networks"] == {"inner": {"aliases": ["db"]}}
    assert found["networks"] == {"inner": {"external": True}}
    assert missing == {"web": ["network bridge, beside others", "network lost"]}
    assert service(None, {"NetworkMode": "container:x"})["network_mode"] == "container:x"


# A value that says something, for each field that has no usual example.
EXAMPLES: dict[str, Any] = {
    "BlkioDeviceReadBps": [{"Path": "/dev/sda", "Rate": 5}],
    "BlkioDeviceReadIOps": [{"Path": "/dev/sda", "Rate": 5}],
    "BlkioDeviceWriteBps": [{"Path": "/dev/sda", "Rate": 5}],
    "BlkioDeviceWriteIOps": [{"Path": "/dev/sda", "Rate": 5}],
    "BlkioWeightDevice": [{"Path": "/dev/sda", "Weight": 5}],
    "CgroupnsMode": "host",
    "DeviceRequests": [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}],
    "Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "rw"}],
    "ExposedPorts": {"80/tcp": {}},
    "Healthcheck": {"Test": ["CMD", "true"]},
    "Init": False,
    "IpcMode": "host",
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
    "MemorySwappiness": 0,
    "Mounts": [{"Type": "tmpfs", "Target": "/t", "TmpfsOptions": {"SizeBytes": 5}}],
    "NetworkMode": "host",
    "PortBindings": {"80/tcp": [{"HostPort": "8080"}]},
    "RestartPolicy": {"Name": "always"},
    "Ulimits": [{"Name": "nofile", "Soft": 5, "Hard": 6}],
}
# Beside these the field says something.
BESIDE: dict[str, dict[str, Any]] = {
    "MaskedPaths": {"MaskedPaths": [], "ReadonlyPaths": []},
    "ReadonlyPaths": {"MaskedPaths": [], "ReadonlyPaths": []},
    "PublishAllPorts": {"PublishAllPorts": True},
}


def _fields(struct: type[msgspec.Struct]) -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(struct)]


def _example(struct: type[msgspec.Struct], name: str) -> Any:
    if name in EXAMPLES:
        return EXAMPLES[name]
    kind = next(str(each.type) for each in msgspec.structs.fields(struct) if each.encode_name == name)
    for word, value in {"dict": {"name": "text"}, "list": ["text"], "int": 5, "bool": True, "str": "text"}.items():
        if word in kind:
            return value
    raise AssertionError(f"{name}: {kind}: an example is missing")


@pytest.mark.parametrize("name", _fields(ContainerConfig))
def test_every_field_of_the_configuration_is_carried_or_named(name: str) -> None:
    given = {name: _example(ContainerConfig, name)}
    told = service(given) != service() or bool(lost(given))
    assert told != (name in _NO_SETTING)


@pytest.mark.parametrize("name", _fields(HostConfig))
def test_every_field_of_the_host_configuration_is_carried_or_named(name: str) -> None:
    given: dict[str, Any] = BESIDE.get(name) or {name: _example(HostConfig, name)}
    image = {"sha256:1": {"Config": {**IMAGE["Config"], "ExposedPorts": {"9/tcp": {}}}}}
    hosts: list[dict[str, Any]] = [{}, given]
    before, after = (compose([box(None, host)], image, Surroundings()) for host in hosts)
    assert (before != after) != (name in _NO_SETTING)


def test_what_has_no_word_is_named() -> None:
    host = {"Links": ["/db:/shop/db"], "AutoRemove": True, "CpusetMems": "0", "NewerThanThis": 1}
    assert lost(None, host) == ["--cpuset-mems", "--rm", "NewerThanThis", "links"]


@pytest.mark.parametrize("name", _fields(HealthConfig))
def test_every_field_of_a_health_check(name: str) -> None:
    value = ["CMD", "true"] if name == "Test" else 1_500_000_000
    expected = ["CMD", "true"] if name == "Test" else 1_500_000_000 if name == "Retries" else "1500000000ns"
    assert list(service({"Healthcheck": {name: value}})["healthcheck"].values()) == [expected]


def test_health_checks() -> None:
    assert service({"Healthcheck": {"Test": ["NONE"]}})["healthcheck"] == {"disable": True}
    assert lost({"Healthcheck": {"Newer": 1}}) == ["Healthcheck.Newer"]
    image = {"Config": {"Healthcheck": {"Test": ["CMD", "a"], "Interval": 10**9}}}
    own = box({"Healthcheck": {"Test": ["CMD", "a"], "Interval": 3 * 10**9}})
    found = compose([own], {"sha256:1": image}, Surroundings()).document
    assert found["services"]["web"]["healthcheck"] == {"interval": "3s"}


@pytest.mark.parametrize("name", _fields(EndpointRequest))
def test_every_field_of_an_endpoint(name: str) -> None:
    values: dict[str, Any] = {"IPAMConfig": {"IPv4Address": "10.0.0.9"}, "MacAddress": "", "DriverOpts": {"a": "b"}}
    endpoint = {name: values.get(name, ["other"] if name in ("Links", "Aliases") else 5)}
    if name == "MacAddress":
        return  # an endpoint tells the one that it has; that which was asked for is in the configuration
    around = Surroundings({"inner": ["10.0.0.0/24"]})
    with_it, without = (
        compose([box(NetworkSettings={"Networks": {"inner": each}})], {}, around) for each in (endpoint, {})
    )
    assert with_it != without


def test_an_address_that_the_network_does_not_have_here_is_named() -> None:
    settings = {"Networks": {"inner": {"IPAMConfig": {"IPv4Address": "10.9.9.9"}}}}
    around = Surroundings({"inner": ["10.0.0.0/24"]})
    assert service(around=around, NetworkSettings=settings)["networks"] == {"inner": {}}
    assert lost(around=around, NetworkSettings=settings) == ["address 10.9.9.9, which network inner does not have here"]


def test_an_entrypoint_of_its_own_hides_the_images_command() -> None:
    assert service({"Entrypoint": ["/run"]})["command"] == ["serve"]
    image = {"sha256:1": {"Config": {"Entrypoint": ["/image"]}}}
    found = compose([box({"Entrypoint": None})], image, Surroundings()).document["services"]["web"]
    assert found["entrypoint"] == [""]


@pytest.mark.parametrize("name", [each for each in _fields(Mount) if each not in ("Type", "Source", "Target")])
def test_every_option_of_a_mount(name: str) -> None:
    options: dict[str, tuple[str, Any, Any]] = {
        "BindOptions": ("bind", {"Propagation": "rslave"}, {"propagation": "rslave"}),
        "ClusterOptions": ("cluster", {"a": "b"}, None),
        "Consistency": ("bind", "cached", "cached"),
        "ImageOptions": ("image", {"Subpath": "a"}, {"subpath": "a"}),
        "ReadOnly": ("volume", True, True),
        "TmpfsOptions": ("tmpfs", {"SizeBytes": 5, "Mode": 0o700}, {"size": 5, "mode": 0o700}),
        "VolumeOptions": ("volume", {"NoCopy": True, "Subpath": "a"}, {"nocopy": True, "subpath": "a"}),
    }
    kind, said, written_as = options[name]
    wish = {"Type": kind, "Target": "/t", "Source": "s", name: said}
    mount = {"Type": kind, "Destination": "/t", "Name": "s", "Source": "s"}
    if written_as is None:
        assert lost(None, {"Mounts": [wish]}, Mounts=[mount]) == ["the cluster mount at /t"]
        return
    [found] = service(None, {"Mounts": [wish]}, Mounts=[mount])["volumes"]
    assert found[{"Consistency": "consistency", "ReadOnly": "read_only"}.get(name, kind)] == written_as


def test_modes_of_binds() -> None:
    mounts = [
        {"Type": "bind", "Source": "/a", "Destination": "/a", "Mode": "z", "RW": True, "Propagation": "rprivate"},
        {"Type": "volume", "Name": "v", "Destination": "/v", "Mode": "nocopy", "RW": True},
    ]
    assert [each.get(each["type"]) for each in service(Mounts=mounts)["volumes"]] == [
        {"selinux": "z"},
        {"nocopy": True},
    ]


def test_namespaces_of_containers_that_come_along_are_their_services() -> None:
    other = {**box(), "Id": "feed", "Name": "/db"}
    own = box(None, {"PidMode": "container:feed", "IpcMode": "container:gone", "NetworkMode": "container:feed"})
    found = compose([own, other], {}, Surroundings()).document["services"]["web"]
    assert (found["pid"], found["ipc"], found["network_mode"]) == ("service:db", "container:gone", "service:db")


def test_drivers_and_runtimes_that_are_not_here_are_named() -> None:
    around = Surroundings({}, {"LoggingDriver": "json-file"}, {"Plugins": {"Log": ["local"]}, "Runtimes": {"crun": {}}})
    host = {"LogConfig": {"Type": "gelf", "Config": {}}, "Runtime": "kata"}
    assert lost(None, host, around=around) == ["log driver gelf", "runtime kata"]
    assert service(None, {"LogConfig": {"Type": "json-file"}, "Runtime": "runc"}, around=around) == service()


def test_twice_the_memory_is_what_an_engine_takes_for_swap() -> None:
    assert "memswap_limit" not in service(None, {"Memory": 5, "MemorySwap": 10})
    assert service(None, {"Memory": 5, "MemorySwap": -1})["memswap_limit"] == -1


def test_the_file_is_what_yaml_reads() -> None:
    document = {
        "a": {"b": [], "c": {}, "d": None},
        "list": [{"x": "no", "y": [1, {"z": "é: #"}]}, "yes", 0.5],
        "e f": "ü",
    }
    assert yaml.safe_load(written(document)) == document
    assert yaml.safe_load(written({"a": "$HOME"})) == {"a": "$$HOME"}
    odd = "a\x85b\u2028c\x7f\x9b\ufeff\n\"': #\U0001f600"
    assert yaml.safe_load(written({"a": odd})) == {"a": odd}
    assert written({"a": "\ud800"}).encode() == '"a": "\ufffd"\n'.encode()
