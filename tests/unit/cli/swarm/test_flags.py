"""Flags of services as parts of the API's document."""

from typing import Any

import click
import pytest

from husk.cli.kit.command import HuskCommand
from husk.cli.swarm.flags import create_flags, created, update_flags, updated
from husk.errors import InvalidParameter


def parsed(flags: list[click.Parameter], *words: str) -> dict[str, Any]:
    command = HuskCommand("x", params=list(flags))
    return dict(command.make_context("x", list(words)).params)


def new(*words: str) -> dict[str, Any]:
    return created(parsed(create_flags(), *words))


def changed(spec: dict[str, Any], *words: str) -> dict[str, Any]:
    return updated(spec, parsed(update_flags(), *words))


def container(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["TaskTemplate"]["ContainerSpec"]
    return found


def test_modes():
    assert new()["Mode"] == {"Replicated": {"Replicas": 1}}
    assert new("--replicas", "3")["Mode"] == {"Replicated": {"Replicas": 3}}
    assert new("--mode", "global")["Mode"] == {"Global": {}}
    job = new("--mode", "replicated-job", "--replicas", "4", "--max-concurrent", "2")
    assert job["Mode"] == {"ReplicatedJob": {"TotalCompletions": 4, "MaxConcurrent": 2}}
    for line in (["--mode", "x"], ["--mode", "global", "--replicas", "1"], ["--max-concurrent", "1"]):
        with pytest.raises(InvalidParameter):
            new(*line)


def test_single_values():
    found = new("--limit-memory", "64m", "--limit-cpu", "0.5", "--stop-grace-period", "3s", "--init", "-u", "bob")
    assert found["TaskTemplate"]["Resources"]["Limits"] == {"MemoryBytes": 64 << 20, "NanoCPUs": 500_000_000}
    assert container(found) == {"StopGracePeriod": 3 * 10**9, "Init": True, "User": "bob"}
    found = new("--update-delay", "1m", "--rollback-order", "start-first", "--entrypoint", "sh -c 'a b'")
    assert found["UpdateConfig"] == {"Delay": 60 * 10**9} and found["RollbackConfig"] == {"Order": "start-first"}
    assert container(found)["Command"] == ["sh", "-c", "a b"]


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("8080:80", [{"Protocol": "tcp", "TargetPort": 80, "PublishMode": "ingress", "PublishedPort": 8080}]),
        ("53/udp", [{"Protocol": "udp", "TargetPort": 53, "PublishMode": "ingress"}]),
        (
            "published=1,target=2,mode=host,protocol=sctp",
            [{"Protocol": "sctp", "PublishMode": "host", "PublishedPort": 1, "TargetPort": 2}],
        ),
    ],
)
def test_ports(text, ports):
    assert new("-p", text)["EndpointSpec"]["Ports"] == ports


@pytest.mark.parametrize("text", ["x", "1:2-3", "99999", "published=1", "a=b", "0:80", "3-1:3-1"])
def test_what_is_no_port(text):
    with pytest.raises(InvalidParameter, match="--publish"):
        new("-p", text)


def test_ranges_of_ports():
    ports = new("-p", "8000-8002:80-82")["EndpointSpec"]["Ports"]
    assert [(each["PublishedPort"], each["TargetPort"]) for each in ports] == [(8000, 80), (8001, 81), (8002, 82)]


def test_secrets_and_configs():
    found = container(new("--secret", "s", "--config", "source=c,target=/etc/c,uid=1,mode=0400"))
    assert found["Secrets"][0]["File"] == {"Name": "s", "UID": "0", "GID": "0", "Mode": 0o444}
    assert found["Configs"] == [{"ConfigName": "c", "File": {"Name": "/etc/c", "UID": "1", "GID": "0", "Mode": 0o400}}]
    for text in ("target=x", "s,mode=9", "source=s,what=1"):
        with pytest.raises(InvalidParameter, match="--secret"):
            new("--secret", text)


def test_lists_are_added_to_and_taken_from():
    before = {
        "TaskTemplate": {
            "ContainerSpec": {"Env": ["A=1", "B=2"], "Labels": {"x": "1"}, "Hosts": ["1.1.1.1 one"]},
            "Placement": {"Constraints": ["node.role==manager"]},
        },
        "Labels": {"team": "red"},
    }
    found = changed(
        before,
        *("--env-add", "A=9", "--env-rm", "B", "--env-add", "C=3", "--container-label-rm", "x", "--label-add", "y=2"),
        *("--host-rm", "one:1.1.1.1", "--host-add", "two:2.2.2.2", "--constraint-rm", "node.role==manager"),
    )
    assert container(found) == {"Env": ["A=9", "C=3"], "Labels": {}, "Hosts": ["2.2.2.2 two"]}
    assert found["Labels"] == {"team": "red", "y": "2"}
    assert found["TaskTemplate"]["Placement"]["Constraints"] == []
    assert before["Labels"] == {"team": "red"}, "what is given stays as it is"


def test_ports_and_mounts_go_by_what_they_are_for():
    before = {"EndpointSpec": {"Ports": [{"TargetPort": 80, "Protocol": "tcp", "PublishedPort": 1}]}}
    assert changed(before, "--publish-rm", "80")["EndpointSpec"]["Ports"] == []
    [port] = changed(before, "--publish-add", "2:80")["EndpointSpec"]["Ports"]
    assert port["PublishedPort"] == 2
    found = changed({}, "--mount-add", "type=bind,src=/a,dst=/b")
    assert changed(found, "--mount-rm", "/b")["TaskTemplate"]["ContainerSpec"]["Mounts"] == []


def test_capabilities_are_on_one_side():
    before = {"TaskTemplate": {"ContainerSpec": {"CapabilityDrop": ["CAP_CHOWN"]}}}
    found = container(changed(before, "--cap-add", "chown", "--cap-drop", "ALL"))
    assert found == {"CapabilityDrop": ["ALL"], "CapabilityAdd": ["CAP_CHOWN"]}


def test_image_arguments_and_force():
    found = changed({"TaskTemplate": {"ForceUpdate": 2}}, "--image", "a:2", "--args", "sleep 5", "--force")
    assert container(found) == {"Image": "a:2", "Args": ["sleep", "5"]}
    assert found["TaskTemplate"]["ForceUpdate"] == 3


def test_health():
    found = container(new("--health-cmd", "true", "--health-interval", "5s"))["Healthcheck"]
    assert found == {"Test": ["CMD-SHELL", "true"], "Interval": 5 * 10**9}
    assert container(new("--no-healthcheck"))["Healthcheck"] == {"Test": ["NONE"]}
    with pytest.raises(InvalidParameter, match="conflicts"):
        new("--no-healthcheck", "--health-cmd", "x")


def test_other_lists():
    found = new("--network", "name=n,alias=a,driver-opt=k=v", "--placement-pref", "spread=node.labels.rack")
    assert found["TaskTemplate"]["Networks"] == [{"Target": "n", "Aliases": ["a"], "DriverOpts": {"k": "v"}}]
    assert found["TaskTemplate"]["Placement"]["Preferences"] == [{"Spread": {"SpreadDescriptor": "node.labels.rack"}}]
    pref = changed(found, "--placement-pref-rm", "spread=node.labels.rack")
    assert pref["TaskTemplate"]["Placement"]["Preferences"] == []
    found = new("--generic-resource", "gpu=2", "--ulimit", "nofile=1:2")
    assert found["TaskTemplate"]["Resources"]["Reservations"]["GenericResources"] == [
        {"DiscreteResourceSpec": {"Kind": "gpu", "Value": 2}}
    ]
    assert container(found)["Ulimits"] == [{"Name": "nofile", "Soft": 1, "Hard": 2}]
    for line in (["--network", "alias=a"], ["--placement-pref", "x"], ["--ulimit", "x"], ["--host", "x"]):
        with pytest.raises(InvalidParameter):
            new(*line)
