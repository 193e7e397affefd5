"""Containers in the words of Compose: what differs from their image, and YAML that Compose reads back."""

from typing import Any

import pytest
import yaml

from husk.cli.migrate.compose import compose, written

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


def service(*args: Any, networks: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    found = compose([box(*args, **more)], {"sha256:1": IMAGE}, networks)
    one: dict[str, Any] = found["services"]["web"]
    return one


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
    found = compose([box(Mounts=mounts)], {}, [])
    assert found["services"]["web"]["volumes"] == [
        {"type": "volume", "source": "data", "target": "/d"},
        {"type": "bind", "source": "/srv", "target": "/s", "read_only": True},
    ]
    assert found["volumes"] == {"data": {"external": True}}


def test_networks() -> None:
    settings = {"Networks": {"inner": {"Aliases": ["0123456789ab", "web", "db"]}, "bridge": {}, "lost": None}}
    found = compose([box(NetworkSettings=settings)], {}, ["inner"])
    assert found["services"]["web"]["networks"] == {"inner": {"aliases": ["db"]}}
    assert found["networks"] == {"inner": {"external": True}}
    assert service(None, {"NetworkMode": "container:x"})["network_mode"] == "container:x"


def test_the_file_is_what_yaml_reads() -> None:
    document = {
        "a": {"b": [], "c": {}, "d": None},
        "list": [{"x": "no", "y": [1, {"z": "é: #"}]}, "yes", 0.5],
        "e f": "ü",
    }
    assert yaml.safe_load(written(document)) == document
    assert yaml.safe_load(written({"a": "$HOME"})) == {"a": "$$HOME"}
