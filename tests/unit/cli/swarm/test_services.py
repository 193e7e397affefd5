import json

import pytest

SERVICE = {
    "ID": "s1" * 6 + "xyz",
    "Version": {"Index": 5},
    "Spec": {
        "Name": "web",
        "Mode": {"Replicated": {"Replicas": 2}},
        "TaskTemplate": {"ContainerSpec": {"Image": "app:1@sha256:" + "0" * 64}},
    },
    "ServiceStatus": {"RunningTasks": 2, "DesiredTasks": 2},
    "Endpoint": {"Ports": [{"PublishedPort": 8080, "TargetPort": 80, "Protocol": "tcp"}]},
}
PATH = f"/services/{SERVICE['ID']}"


@pytest.fixture
def swarm(engine, monkeypatch):
    monkeypatch.setattr("husk.cli.swarm.converging._PAUSE", 0)
    engine.answers("GET", "/services", [SERVICE])
    engine.answers("GET", "/services/web", SERVICE)
    engine.answers("GET", PATH, SERVICE)
    engine.answers("POST", f"{PATH}/update", {})
    engine.answers("POST", "/services/create", {"ID": SERVICE["ID"]})
    return engine


def test_listing(swarm, typed):
    heading, row = typed("service", "ls").out.splitlines()
    assert heading.split() == ["ID", "NAME", "MODE", "REPLICAS", "IMAGE", "PORTS"]
    assert row.split() == ["s1s1s1s1s1s1", "web", "replicated", "2/2", "app:1", "*:8080->80/tcp"]


def test_jobs_say_how_many_are_done(swarm, typed):
    mode = {"ReplicatedJob": {"TotalCompletions": 5}}
    status = {"RunningTasks": 1, "DesiredTasks": 2, "CompletedTasks": 3}
    job = {**SERVICE, "Spec": {"Name": "job", "Mode": mode}, "ServiceStatus": status}
    swarm.answers("GET", "/services", [job])
    told = typed("service", "ls", "--format", "{{.Mode}} {{.Replicas}}").out
    assert told == "replicated job 1/2 (3/5 completed)\n"


def test_create_waits_until_it_runs(swarm, typed):
    told = typed("service", "create", "--name", "web", "-e", "A=1", "app:1", "serve", "--port", "1")
    assert told.code == 0 and told.out.splitlines()[-1] == "verify: Service web converged"
    asked = swarm.last("POST", "/services/create")
    container = asked.document["TaskTemplate"]["ContainerSpec"]
    assert container == {"Image": "app:1", "Args": ["serve", "--port", "1"], "Env": ["A=1"]}
    assert typed("service", "create", "-d", "app:1").out == f"{SERVICE['ID']}\n"


def test_secrets_are_looked_up(swarm, typed):
    swarm.answers("GET", "/secrets/key", {"ID": "k1", "Spec": {"Name": "key"}})
    typed("service", "create", "-d", "--secret", "key", "app:1")
    [secret] = swarm.last("POST", "/services/create").document["TaskTemplate"]["ContainerSpec"]["Secrets"]
    assert (secret["SecretID"], secret["SecretName"]) == ("k1", "key")
    assert typed("service", "create", "-d", "--secret", "none", "app:1").code == 1


def test_update(swarm, typed):
    told = typed("service", "update", "--image", "app:2", "--label-add", "a=b", "web")
    assert told.code == 0 and told.out.splitlines()[0] == "web"
    asked = swarm.last("POST", f"{PATH}/update")
    assert asked.document["TaskTemplate"]["ContainerSpec"]["Image"] == "app:2"
    assert asked.document["Labels"] == {"a": "b"} and asked.query["version"] == "5"
    typed("service", "rollback", "-d", "web")
    assert swarm.last("POST", f"{PATH}/update").query["rollback"] == "previous"


def test_scale(swarm, typed):
    assert typed("service", "scale", "-d", "web=3").out == "web scaled to 3\n"
    assert swarm.last("POST", f"{PATH}/update").document["Mode"] == {"Replicated": {"Replicas": 3}}
    assert "expected SERVICE=REPLICAS" in typed("service", "scale", "web").err


def test_pretty(swarm, typed):
    assert "  Name: web" in typed("service", "inspect", "--pretty", "web").out.splitlines()
    assert json.loads(typed("service", "inspect", "web").out)[0]["ID"] == SERVICE["ID"]
