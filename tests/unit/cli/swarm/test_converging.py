import pytest

from husk.cli.swarm.converging import progress

SPEC = {"Name": "web", "Mode": {"Replicated": {"Replicas": 2}}}


@pytest.mark.parametrize(
    ("status", "mode", "told"),
    [
        ({"RunningTasks": 1, "DesiredTasks": 2}, {"Replicated": {}}, ("overall progress: 1 out of 2 tasks", False)),
        ({"RunningTasks": 2, "DesiredTasks": 2}, {"Global": {}}, ("overall progress: 2 out of 2 tasks", True)),
        (
            {"CompletedTasks": 3},
            {"ReplicatedJob": {"TotalCompletions": 3}},
            ("job progress: 3 out of 3 complete", True),
        ),
        ({}, {"GlobalJob": {}}, ("job progress: 0 out of 1 complete", False)),
    ],
)
def test_progress(status, mode, told):
    assert progress({"ServiceStatus": status, "Spec": {"Mode": mode}}) == told


def test_an_update_that_is_paused_fails(engine, typed, monkeypatch):
    monkeypatch.setattr("husk.cli.swarm.converging._PAUSE", 0)
    service = {"ID": "s1", "Version": {"Index": 1}, "Spec": SPEC}
    paused = {**service, "UpdateStatus": {"State": "paused", "Message": "task failed"}, "ServiceStatus": {}}
    engine.answers("GET", "/services/web", service)
    engine.answers("GET", "/services/s1", service)
    engine.answers("POST", "/services/s1/update", {})
    engine.answers("GET", "/services", [paused])
    told = typed("service", "update", "--force", "web")
    assert (told.code, told.err) == (1, "service update paused: task failed\n")
