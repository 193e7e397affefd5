import pytest

from husk.client.service_spec import RestartPolicy, ServiceFile, ServiceSpec, UpdateConfig, changed, document
from husk.client.spec import Healthcheck, Mount
from husk.errors import InvalidParameter

SECOND = 10**9


def test_the_least():
    assert document(ServiceSpec(image="a")) == {
        "TaskTemplate": {"ContainerSpec": {"Image": "a"}},
        "Mode": {"Replicated": {"Replicas": 1}},
    }


def test_the_most():
    file = ServiceFile(id="s1", name="secret", filename="here", mode=0o400)
    spec = ServiceSpec(
        image="a",
        command="sleep 60",
        entrypoint=["/init"],
        name="web",
        environment={"A": "b"},
        labels={"l": "1"},
        container_labels={"c": "2"},
        stop_grace_period=1.5,
        healthcheck=Healthcheck(test="true", interval=1),
        mounts=[Mount(target="/data", source="data", type="volume")],
        secrets=[file],
        configs=[file],
        dns=["10.0.0.1"],
        ulimits={"nofile": 5},
        replicas=3,
        constraints=["node.role==manager"],
        networks=["inner"],
        ports={"80": 8080, "53/udp": None},
        publish_mode="host",
        memory="64m",
        cpus=0.5,
        memory_reservation="32m",
        restart_policy=RestartPolicy(condition="on-failure", delay=1),
        update_config=UpdateConfig(order="start-first", delay=2),
        log_driver="json-file",
        log_opts={"max-size": "1m"},
        extra={"TaskTemplate": {"ForceUpdate": 1}},
    )
    target = {"Name": "here", "UID": "0", "GID": "0", "Mode": 0o400}
    found = document(spec)
    task = found["TaskTemplate"]
    container = task["ContainerSpec"]
    assert (found["Name"], found["Labels"], found["Mode"]) == ("web", {"l": "1"}, {"Replicated": {"Replicas": 3}})
    assert (container["Args"], container["Command"], container["Env"]) == (["sleep", "60"], ["/init"], ["A=b"])
    assert (container["Labels"], container["StopGracePeriod"]) == ({"c": "2"}, 1.5 * SECOND)
    assert container["Healthcheck"]["Test"] == ["CMD-SHELL", "true"]
    assert container["Mounts"] == [{"Type": "volume", "Source": "data", "Target": "/data", "ReadOnly": False}]
    assert container["Secrets"] == [{"SecretID": "s1", "SecretName": "secret", "File": target}]
    assert container["Configs"] == [{"ConfigID": "s1", "ConfigName": "secret", "File": target}]
    assert container["DNSConfig"] == {"Nameservers": ["10.0.0.1"]}
    assert container["Ulimits"] == [{"Name": "nofile", "Soft": 5, "Hard": 5}]
    assert task["Resources"] == {
        "Limits": {"MemoryBytes": 64 << 20, "NanoCPUs": SECOND // 2},
        "Reservations": {"MemoryBytes": 32 << 20},
    }
    assert task["Placement"] == {"Constraints": ["node.role==manager"]}
    assert (task["Networks"], task["ForceUpdate"]) == ([{"Target": "inner"}], 1)
    assert task["LogDriver"] == {"Name": "json-file", "Options": {"max-size": "1m"}}
    assert task["RestartPolicy"] == {"Condition": "on-failure", "Delay": SECOND, "MaxAttempts": 0, "Window": 0}
    assert found["EndpointSpec"] == {
        "Ports": [
            {"TargetPort": 80, "Protocol": "tcp", "PublishMode": "host", "PublishedPort": 8080},
            {"TargetPort": 53, "Protocol": "udp", "PublishMode": "host"},
        ]
    }
    assert (found["UpdateConfig"]["Order"], found["UpdateConfig"]["Delay"]) == ("start-first", 2 * SECOND)


@pytest.mark.parametrize(
    ("keywords", "mode"),
    [
        ({"mode": "global"}, {"Global": {}}),
        ({"mode": "global-job"}, {"GlobalJob": {}}),
        ({"mode": "replicated-job", "replicas": 4}, {"ReplicatedJob": {"TotalCompletions": 4}}),
        ({"mode": "replicated-job", "max_concurrent": 2}, {"ReplicatedJob": {"MaxConcurrent": 2}}),
    ],
)
def test_modes(keywords, mode):
    assert document(ServiceSpec(image="a", **keywords))["Mode"] == mode


def test_what_is_not_said_anew_stays():
    before = {
        "Name": "web",
        "Labels": {"l": "1"},
        "TaskTemplate": {"ContainerSpec": {"Image": "a:1", "Env": ["A=b"]}, "Resources": None},
        "Mode": {"Replicated": {"Replicas": 3}},
    }
    after = changed(before, {"image": "a:2", "labels": {}, "memory": "1m"})
    assert after == {
        "Name": "web",
        "Labels": {},
        "TaskTemplate": {
            "ContainerSpec": {"Image": "a:2", "Env": ["A=b"]},
            "Resources": {"Limits": {"MemoryBytes": 1 << 20}},
        },
        "Mode": {"Replicated": {"Replicas": 3}},
    }
    assert before["TaskTemplate"] == {"ContainerSpec": {"Image": "a:1", "Env": ["A=b"]}, "Resources": None}
    assert changed(before, {"replicas": 0})["Mode"] == {"Replicated": {"Replicas": 0}}
    assert changed(before, {"update_config": None, "restart_policy": None})["UpdateConfig"] is None


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"mode": "many"}, "expected replicated"),
        ({"mode": "global", "replicas": 2}, "replicas cannot be said"),
        ({"ports": {"http": 80}}, "is no port"),
        ({"colour": "red"}, "knows no colour"),
    ],
)
def test_what_cannot_be(keywords, said):
    with pytest.raises(InvalidParameter, match=said):
        changed({}, {"image": "a", **keywords})
