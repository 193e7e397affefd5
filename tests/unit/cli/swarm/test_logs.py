import pytest

LINE = (
    b"2026-01-01T00:00:01Z com.docker.swarm.node.id=n1,com.docker.swarm.service.id=s1,"
    b"com.docker.swarm.task.id=t1t1t1t1t1t1t1t1 hello\n"
)


@pytest.fixture
def swarm(engine):
    engine.answers("GET", "/services/web", {"ID": "s1", "Spec": {"Name": "web"}})
    engine.answers("GET", "/services", [{"ID": "s1", "Spec": {"Name": "web"}}])
    engine.answers("GET", "/nodes", [{"ID": "n1", "Spec": {}, "Description": {"Hostname": "box"}}])
    engine.answers("GET", "/tasks", [{"ID": "t1" * 8, "ServiceID": "s1", "NodeID": "n1", "Slot": 1}])
    engine.answers("GET", "/services/s1/logs", LINE)
    return engine


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("-t",), "2026-01-01T00:00:01Z web.1.t1t1t1t1t1t1@box    | hello\n"),
        (("-t", "--no-task-ids"), "2026-01-01T00:00:01Z web.1@box    | hello\n"),
        (("-t", "--no-resolve"), "2026-01-01T00:00:01Z t1t1t1t1t1t1@n1    | hello\n"),
        (("-t", "--no-trunc"), "2026-01-01T00:00:01Z web.1.t1t1t1t1t1t1t1t1@box    | hello\n"),
    ],
)
def test_the_task_stands_before_its_line(swarm, typed, flags, line):
    assert typed("service", "logs", *flags, "web").out == line


def test_raw(swarm, typed):
    swarm.answers("GET", "/services/s1/logs", b"hello\n")
    assert typed("service", "logs", "--raw", "web").out == "hello\n"
    assert typed("service", "logs", "none").err == "husk: no such task or service: none\n"
