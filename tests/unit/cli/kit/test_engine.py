from husk.cli.kit.engine import run, told
from husk.errors import CommandFailed, InvalidParameter, NotFound, SystemFault
from tests.support.fake_engine import failed

ID = "ab" * 32


def test_each_is_tried_whatever_becomes_of_the_others(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": ID, "Name": "/web"})
    engine.answers("GET", "/containers/nope/json", failed(404, "No such container: nope"))
    engine.answers("POST", f"/containers/{ID}/pause", None)
    done = typed("pause", "nope", "web")
    assert done == (1, "web\n", "Error response from daemon: No such container: nope\n")
    assert typed("pause", "web", "--json").out == '[{"Name":"web","Error":null}]\n'


def test_what_is_gone_already_is_no_failure_where_it_is_forced(engine, typed):
    """As docker's: it is told of, and the exit code is 0."""
    engine.answers("GET", "/containers/nope/json", failed(404, "No such container: nope"))
    engine.answers("DELETE", "/images/nope", failed(404, "No such image: nope"))
    assert typed("rm", "-f", "nope") == (0, "", "Error response from daemon: No such container: nope\n")
    assert typed("rmi", "-f", "nope") == (0, "", "Error response from daemon: No such image: nope\n")
    assert (typed("rm", "nope").code, typed("rmi", "nope").code) == (1, 1)


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
    answer = NotFound("No such image: x")
    answer.from_engine = True
    assert told(answer) == "Error response from daemon: No such image: x"
    assert told(InvalidParameter("no directory: x")) == "husk: no directory: x"
    assert told(SystemFault("the push broke off")) == "the push broke off"
    assert told(CommandFailed("it broke off", 1)) == "it broke off"
