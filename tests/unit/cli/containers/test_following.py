from tests.support.fake_engine import failed


def test_the_failure_of_one_is_told_when_the_others_have_ended(engine, typed):
    for name in ("web", "db"):
        engine.answers("GET", f"/containers/{name}/json", {"Id": f"id-{name}", "Name": f"/{name}"})
    engine.answers("GET", "/containers/id-web/logs", failed(500, "its log is gone"))
    engine.answers("GET", "/containers/id-db/logs", b"2026-01-01T00:00:02Z two\n")
    assert typed("logs", "-f", "web", "db") == (1, "db  | two\n", "Error response from daemon: its log is gone\n")
