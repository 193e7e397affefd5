import json

from tests.support.fake_engine import failed

PULLED = b'{"status":"Status: Downloaded"}\n'
MADE = {"Id": "abc", "Warnings": ["mind it"]}


def pulls(engine) -> int:
    return sum(asked.path == "/images/create" for asked in engine.asked)


def test_a_missing_image_is_pulled(engine, typed, tmp_path):
    engine.answers("POST", "/containers/create", failed(404, "No such image: x:latest"), MADE)
    engine.answers("POST", "/images/create", PULLED)
    engine.answers("GET", "/containers/abc/json", {"Id": "abc"})
    code, out, err = typed("create", "--cidfile", f"{tmp_path}/id", "--name", "web", "x", "ls", "-l")
    assert (code, out) == (0, "abc\n")
    assert err == "Unable to find image 'x:latest' locally\nStatus: Downloaded\nWARNING: mind it\n"
    assert (tmp_path / "id").read_text() == "abc"
    assert engine.last("POST", "/containers/create").document["Cmd"] == ["ls", "-l"]
    assert "container ID file found" in typed("create", "--cidfile", f"{tmp_path}/id", "x").err


def test_when_it_is_pulled(engine, typed):
    engine.answers("POST", "/images/create", PULLED)
    engine.answers("POST", "/containers/create", MADE)
    engine.answers("GET", "/containers/abc/json", {"Id": "abc"})
    assert json.loads(typed("create", "--pull", "always", "-q", "--json", "x").out) == MADE
    assert pulls(engine) == 1
    engine.answers("POST", "/containers/create", failed(404, "No such image: x:latest"))
    assert typed("create", "--pull=never", "x") == (1, "", "Error response from daemon: No such image: x:latest\n")
    engine.answers("POST", "/containers/create", failed(404, "No such network: y"))
    assert typed("create", "x").code == 1
    assert pulls(engine) == 1
