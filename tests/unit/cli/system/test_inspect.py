import json

from tests.support.fake_engine import failed


def test_whatever_has_the_name(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": "1", "State": {"Status": "running"}})
    engine.answers("GET", "/volumes/data", {"Name": "data", "Driver": "local"})
    for path in ("/services/nope", "/tasks/nope", "/nodes/nope", "/secrets/nope", "/configs/nope"):
        engine.answers("GET", path, failed(503, "This node is not a swarm manager."))
    assert typed("inspect", "-f", "{{.State.Status}}", "web").out == "running\n"
    assert json.loads(typed("inspect", "--json", "data").out) == [{"Name": "data", "Driver": "local"}]
    code, out, err = typed("inspect", "nope", "web")
    assert (code, err) == (1, "Error: No such object: nope\n") and out.startswith('[\n    {\n        "Id": "1"')
    assert typed("inspect", "--type", "image", "web").err == "Error response from daemon: No such image: web\n"
    assert typed("inspect", "--type", "volume", "-f", "json", "data").out == '{"Name":"data","Driver":"local"}\n'
    engine.answers("GET", "/containers/bad/json", failed(500, "broken"))
    assert typed("inspect", "bad").err == "Error response from daemon: broken\n"


def test_a_kind_that_is_none(typed):
    told = typed("inspect", "--type", "bad", "web")
    assert told.code == 1 and 'unknown type: "bad": must be one of config, container' in told.err
