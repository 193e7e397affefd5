"""Fields that dockerd 28.5 always tells of a service, a task, a node or a network, whatever was declared."""

from typing import Any

from tests.support.swarm import FOREVER, Swarm
from tests.support.waiting import until

CONTAINER: dict[str, Any] = {"Image": "busybox:latest", "Command": [*FOREVER], "StopGracePeriod": 0}
KEPT = {**CONTAINER, "Isolation": "default"}


def create(swarm: Swarm, **spec: object) -> dict[str, Any]:
    answer = swarm.daemon.http("POST", "/services/create", {"Name": "web", **spec})
    assert answer.status == 201, answer.body
    assert answer.json()["Warnings"] is None
    return swarm.inspect("web")


def test_a_service_that_says_nothing(swarm: Swarm) -> None:
    shown = create(swarm, TaskTemplate={"ContainerSpec": CONTAINER})
    assert shown["Spec"] == {
        "Name": "web",
        "Labels": {},
        "TaskTemplate": {"ContainerSpec": KEPT, "ForceUpdate": 0, "Runtime": "container"},
        "Mode": {"Replicated": {"Replicas": 1}},
    }
    assert shown["Endpoint"] == {"Spec": {}}
    assert set(shown) == {"ID", "Version", "CreatedAt", "UpdatedAt", "Spec", "Endpoint"}
    update = {
        "Parallelism": 1, "FailureAction": "pause", "Monitor": 5 * 10**9, "MaxFailureRatio": 0, "Order": "stop-first",
    }  # fmt: skip
    assert swarm.daemon.http("GET", "/services/web?insertDefaults=1").json()["Spec"] == {
        **shown["Spec"],
        "TaskTemplate": {
            "ContainerSpec": {**KEPT, "DNSConfig": {}},
            "Resources": {},
            "RestartPolicy": {"Condition": "any", "Delay": 5 * 10**9, "MaxAttempts": 0},
            "Placement": {},
            "ForceUpdate": 0,
            "Runtime": "container",
        },
        "UpdateConfig": update,
        "RollbackConfig": update,
    }
    [id] = swarm.settles("web", 1)
    [task] = swarm.tasks("web")
    assert task["Spec"] == {"ContainerSpec": KEPT, "ForceUpdate": 0}
    assert (task["Labels"], task["Volumes"], task["Status"]["PortStatus"]) == ({}, None, {})
    host = swarm.daemon.http("GET", f"/containers/{id}/json").json()["HostConfig"]
    assert (host["Isolation"], host["Ulimits"], host["Dns"]) == ("default", [], None)


def test_a_service_that_says_little_of_everything(swarm: Swarm) -> None:
    template = {
        "ContainerSpec": {**CONTAINER, "Privileges": {}, "DNSConfig": {}, "Isolation": "default"},
        "Resources": {"Limits": {}, "Reservations": {}},
        "RestartPolicy": {},
        "Placement": {},
    }
    port = {"Protocol": "tcp", "TargetPort": 80, "PublishMode": "ingress"}
    shown = create(
        swarm,
        Labels=None,
        TaskTemplate=template,
        Mode={"Replicated": {}},
        UpdateConfig={},
        EndpointSpec={"Ports": [{"TargetPort": 80}]},
    )
    assert shown["Spec"] == {
        "Name": "web",
        "Labels": {},
        "TaskTemplate": {
            "ContainerSpec": {
                **KEPT,
                "Privileges": {"CredentialSpec": None, "SELinuxContext": None, "NoNewPrivileges": False},
                "DNSConfig": {},
            },
            "Resources": {"Limits": {}, "Reservations": {}},
            "RestartPolicy": {"Condition": "any", "MaxAttempts": 0},
            "Placement": {},
            "ForceUpdate": 0,
            "Runtime": "container",
        },
        "Mode": {"Replicated": {"Replicas": 1}},
        "UpdateConfig": {"Parallelism": 0, "FailureAction": "pause", "MaxFailureRatio": 0, "Order": "stop-first"},
        "EndpointSpec": {"Mode": "vip", "Ports": [port]},
    }
    [published] = shown["Endpoint"]["Ports"]
    assert published == {**port, "PublishedPort": published["PublishedPort"]}


def test_a_job_and_its_task(swarm: Swarm) -> None:
    shown = create(swarm, TaskTemplate={"ContainerSpec": CONTAINER}, Mode={"ReplicatedJob": {}})
    assert shown["Spec"]["Mode"] == {"ReplicatedJob": {"MaxConcurrent": 1, "TotalCompletions": 1}}
    assert shown["JobStatus"]["JobIteration"] == {}
    until(lambda: [task["JobIteration"] for task in swarm.tasks("web")] == [{}], "its task says so too")


def test_a_window_is_shown_where_one_was_given(swarm: Swarm) -> None:
    policy = {"Condition": "on-failure", "Window": 0}
    shown = create(swarm, TaskTemplate={"ContainerSpec": CONTAINER, "RestartPolicy": policy})
    assert shown["Spec"]["TaskTemplate"]["RestartPolicy"] == {**policy, "MaxAttempts": 0}


def test_generic_resources_are_kept_and_waited_for(swarm: Swarm) -> None:
    wanted = {"Reservations": {"GenericResources": [{"DiscreteResourceSpec": {"Kind": "SSD", "Value": 3}}]}}
    shown = create(swarm, TaskTemplate={"ContainerSpec": CONTAINER, "Resources": wanted})
    assert shown["Spec"]["TaskTemplate"]["Resources"] == wanted
    reason = "no suitable node (insufficient resources on 1 node)"
    until(lambda: [task["Status"].get("Err") for task in swarm.tasks("web")] == [reason], "no node has any")


def test_the_node(swarm: Swarm) -> None:
    [node] = swarm.daemon.http("GET", "/nodes").json()
    assert node["Spec"] == {"Labels": {}, "Role": "manager", "Availability": "active"}
    kinds = [(plugin["Type"], plugin["Name"]) for plugin in node["Description"]["Engine"]["Plugins"]]
    assert kinds == sorted(kinds) and ("Log", "none") not in kinds
    assert set(node["Description"]["Engine"]) == {"EngineVersion", "Plugins"}


def test_a_network_of_the_swarm_is_known_in_full_where_it_is_used(swarm: Swarm) -> None:
    daemon = swarm.daemon
    assert daemon.http("POST", "/networks/create", {"Name": "ov", "Driver": "overlay"}).status == 201
    try:
        unused = daemon.http("GET", "/networks/ov").json()
        assert (unused["Containers"], unused["Labels"], unused["IPAM"]["Options"]) == (None, None, None)
        create(swarm, TaskTemplate={"ContainerSpec": CONTAINER, "Networks": [{"Target": "ov"}]})
        swarm.settles("web", 1)
        used = daemon.http("GET", "/networks/ov").json()
        balancer = used["Containers"].pop("lb-ov")
        assert (len(used["Containers"]), used["Labels"]) == (1, {})
        gateway, length = (used["IPAM"]["Config"][0][key] for key in ("Gateway", "Subnet"))
        assert balancer["Name"] == "ov-endpoint" and len(balancer["EndpointID"]) == 64
        assert balancer["IPv4Address"] == f"{gateway}/{length.partition('/')[2]}"
        [task] = swarm.live("web")
        spec = task["NetworksAttachments"][0]["Network"]["Spec"]
        assert set(spec) == {"Name", "Labels", "DriverConfiguration", "Scope"}
    finally:
        swarm.remove_all()
        daemon.docker("network", "rm", "ov")
