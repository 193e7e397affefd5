from husk.cli.kit.engine import run, told
from husk.errors import CommandFailed, NotFound
from tests.support.fake_engine import failed

ID = "ab" * 32


def test_each_is_tried_whatever_becomes_of_the_others(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": ID, "Name": "/web"})
    engine.answers("GET", "/containers/nope/json", failed(404, "No such container: nope"))
    engine.answers("POST", f"/containers/{ID}/pause", None)
    done = typed("pause", "nope", "web")
    assert done == (1, "web\n", "Error response from daemon: No such container: nope\n")
    assert typed("pause", "web", "--json").out == '[{"Name":"web","Error":null}]\n'


def test_no_engine(typed, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", "unix:///nosuch")
    code, out, err = typed("ps")
    assert (code, out) == (1, "") and err.startswith("husk: cannot reach an engine at unix:///nosuch")
    assert typed("run", "busybox").code == 125
    assert typed("-H", "x://y", "ps").err.startswith("husk: invalid address 'x://y'")


def test_ctrl_c_needs_no_words(capfd):
    async def left():
        raise KeyboardInterrupt

    assert run(left()) == 130
    assert capfd.readouterr() == ("", "")


def test_what_the_engine_says():
    assert told(NotFound("No such image: x")) == "Error response from daemon: No such image: x"
    assert told(CommandFailed("it broke off", 1)) == "it broke off"
