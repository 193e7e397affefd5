import pytest

NODE = {
    "ID": "n1",
    "Version": {"Index": 1},
    "Spec": {"Role": "worker", "Availability": "active", "Labels": {"a": "1"}},
    "Description": {"Hostname": "box", "Engine": {"EngineVersion": "1.0"}},
    "Status": {"State": "ready"},
    "ManagerStatus": {"Leader": True},
}


@pytest.fixture
def swarm(engine):
    engine.answers("GET", "/nodes", [NODE])
    engine.answers("GET", "/nodes/box", NODE)
    engine.answers("GET", "/nodes/n1", NODE)
    engine.answers("POST", "/nodes/n1/update", None)
    return engine


def test_listing(swarm, typed):
    assert typed("node", "ls").out.splitlines()[1].split() == ["n1", "box", "Ready", "Active", "Leader", "1.0"]


def test_roles(swarm, typed):
    assert typed("node", "promote", "box").out == "Node box promoted to a manager in the swarm.\n"
    assert swarm.last("POST", "/nodes/n1/update").document["Role"] == "manager"
    assert typed("node", "demote", "box").out == "Manager box demoted in the swarm.\n"


def test_update(swarm, typed):
    assert typed("node", "update", "--label-add", "b=2", "--label-rm", "a", "--availability", "drain", "box").code == 0
    asked = swarm.last("POST", "/nodes/n1/update").document
    assert (asked["Labels"], asked["Availability"], asked["Role"]) == ({"b": "2"}, "drain", "worker")
    assert "has no label z" in typed("node", "update", "--label-rm", "z", "box").err
