import pytest

from husk.cli.swarm.tasks import ports, row

TASKS = [
    {
        "ID": f"t{number}" * 8,
        "CreatedAt": f"2026-01-0{number}T00:00:00Z",
        "ServiceID": "s1",
        "NodeID": "n1",
        "Slot": 1,
        "DesiredState": "running",
        "Status": {"State": state, "Err": "task: non-zero exit (1), and more words"},
        "Spec": {"ContainerSpec": {"Image": "app:1"}},
    }
    for number, state in ((1, "failed"), (2, "running"))
]


@pytest.fixture
def swarm(engine):
    engine.answers("GET", "/services", [{"ID": "s1", "Spec": {"Name": "web"}}])
    engine.answers("GET", "/services/web", {"ID": "s1", "Spec": {"Name": "web"}})
    engine.answers("GET", "/nodes", [{"ID": "n1", "Spec": {}, "Description": {"Hostname": "box"}}])
    engine.answers("GET", "/nodes/self", {"ID": "n1", "Spec": {}})
    engine.answers("GET", "/tasks", TASKS)
    return engine


@pytest.mark.parametrize("line", [("service", "ps", "web"), ("node", "ps"), ("stack", "ps", "shop")])
def test_the_newest_task_of_a_place_stands_above_the_others(swarm, typed, line):
    told = typed(*line, "--format", "{{.Name}} {{.Node}} {{.CurrentState}}").out
    assert told == "web.1 box Running\nweb.1 box Failed\n"
    _, newest, older = typed(*line).out.splitlines()
    assert newest.split()[1] == "web.1" and older.split()[1:3] == ["\\_", "web.1"]
    assert typed(*line, "-q").out == "t2t2t2t2t2t2\nt1t1t1t1t1t1\n"


def test_a_service_that_is_not_there(swarm, typed):
    assert typed("service", "ps", "none").err == "husk: no such service: none\n"


def test_a_row():
    found = row(TASKS[0], {}, whole=False, now=0)
    assert found["Error"] == '"task: non-zero exit (1), and …"'
    assert row(TASKS[0], {}, whole=True, now=0)["ID"] == "t1" * 8
    assert ports([{"TargetPort": 80, "PublishedPort": 1}, {"TargetPort": 9, "Protocol": "udp"}]) == "*:1->80/tcp,9/udp"
