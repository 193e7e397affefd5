"""Faults of a service are said before anything is done."""

import pytest
from msgspec import convert

from husk.errors import HuskError
from husk.swarm.model.services import ServiceSpec
from husk.swarm.spec.validate import MOST_BYTES, check

FINE = {"Name": "web", "TaskTemplate": {"ContainerSpec": {"Image": "busybox"}}}
FILE = {"Name": "f", "UID": "0", "GID": "0", "Mode": 292}


def spec(**changes: object) -> ServiceSpec:
    return convert({**FINE, **changes}, ServiceSpec)


def template(**changes: object) -> dict[str, object]:
    return {"TaskTemplate": {"ContainerSpec": {"Image": "busybox"}, **changes}}


def container(**changes: object) -> dict[str, object]:
    return {"TaskTemplate": {"ContainerSpec": {"Image": "busybox", **changes}}}


def test_a_plain_service_is_fine():
    check(spec())


def test_a_constraint_that_was_taken_is_taken_again():
    """A former release took more; whoever changes something else of the service need not know."""
    old, fresh = (spec(**template(Placement={"Constraints": [text]})) for text in ("node.labels.a/b==c", "a==b"))
    check(old, [None, old])
    with pytest.raises(HuskError, match="key 'a' is invalid"):
        check(fresh, [old])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Name": ""}, "name must be provided"),
        ({"Name": "a b"}, "DNS name component"),
        (container(Env=["X=" + "x" * MOST_BYTES]), f"{MOST_BYTES} are taken at most"),
        ({"Name": "x" * 64}, "63 characters or fewer"),
        ({"TaskTemplate": {}}, "missing runtime"),
        (container(Image=""), "image reference must be provided"),
        (template(PluginSpec={}), "plugins"),
        (template(Runtime="jail"), "unsupported runtime"),
        ({"Mode": {"Replicated": {"Replicas": 20_000_000}}}, "more than one host can ever have"),
        ({"Mode": {"ReplicatedJob": {"TotalCompletions": 20_000_000}}}, "more than one host can ever have"),
        ({"Mode": {"ReplicatedJob": {"MaxConcurrent": 20_000_000}}}, "more than one host can ever have"),
        (template(RestartPolicy={"Condition": "sometimes"}), "RestartCondition"),
        (template(RestartPolicy={"Delay": -1}), "cannot be negative"),
        (template(Placement={"Constraints": ["nonsense"]}), "constraint"),
        (template(Resources={"Limits": {"MemoryBytes": 1}}), "at least 4MiB"),
        (template(Resources={"Reservations": {"NanoCPUs": 1}}), "at least 0.001"),
        ({"Mode": {"Replicated": {"Replicas": -1}}}, "non-negative"),
        ({"Mode": {"Replicated": {}, "Global": {}}}, "only one service mode"),
        ({"Mode": {"GlobalJob": {}}, "UpdateConfig": {}}, "Jobs may not have an update config"),
        ({"Mode": {"ReplicatedJob": {}}, "RollbackConfig": {}}, "Jobs may not have a rollback config"),
        (container(Mounts=[{"Type": "weird", "Target": "/x"}]), 'invalid MountType: "weird"'),
        (container(Healthcheck={"Interval": 1000}), "ContainerSpec: Interval in HealthConfig cannot be less than 1ms"),
        (container(Healthcheck={"Retries": -1}), "Retries in HealthConfig cannot be negative"),
        ({"UpdateConfig": {"FailureAction": "cry"}}, "failure action"),
        ({"UpdateConfig": {"Order": "both"}}, "update order"),
        ({"UpdateConfig": {"MaxFailureRatio": 2}}, "maxfailureratio"),
        ({"EndpointSpec": {"Mode": "magic"}}, "invalid resolution mode"),
        ({"EndpointSpec": {"Ports": [{"TargetPort": 0}]}}, "out of range"),
        ({"EndpointSpec": {"Ports": [{"TargetPort": 1, "Protocol": "icmp"}]}}, "invalid port"),
        ({"EndpointSpec": {"Mode": "dnsrr", "Ports": [{"TargetPort": 1}]}}, "dnsrr"),
        (
            {"EndpointSpec": {"Ports": [{"TargetPort": 1, "PublishedPort": 9}, {"TargetPort": 2, "PublishedPort": 9}]}},
            "duplicate published ports",
        ),
        (container(Secrets=[{"SecretID": "1", "SecretName": "a"}]), "malformed secret reference"),
        (container(Configs=[{"ConfigID": "", "ConfigName": "a", "File": FILE}]), "malformed config reference"),
        (
            container(
                Secrets=[
                    {"SecretID": "1", "SecretName": "a", "File": FILE},
                    {"SecretID": "2", "SecretName": "b", "File": FILE},
                ]
            ),
            "conflicting target",
        ),
        (
            container(Secrets=[{"SecretID": "1", "SecretName": "a", "File": {**FILE, "Name": "../../etc/shadow"}}]),
            "invalid target",
        ),
    ],
)
def test_mistakes(changes: dict[str, object], said: str):
    with pytest.raises(HuskError, match=said):
        check(spec(**changes))
