from tests.support.fake_engine import failed

ID = "ab" * 32


def test_only_what_runs_can_be_attached_to(engine, typed):
    for status, told in (("exited", "stopped container, start it"), ("paused", "paused container, unpause it")):
        engine.answers("GET", "/containers/web/json", {"Id": ID, "State": {"Status": status}})
        done = typed("attach", "web")
        assert done.code == 1 and told in done.err


def test_start(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": ID})
    engine.answers("POST", f"/containers/{ID}/start", None)
    engine.answers("GET", "/containers/nope/json", failed(404, "No such container: nope"))
    assert typed("start", "web", "nope") == (1, "web\n", "Error response from daemon: No such container: nope\n")
    assert "multiple containers" in typed("start", "-a", "web", "nope").err
