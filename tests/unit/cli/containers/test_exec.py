ID = "ab" * 32


def test_in_the_background(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": ID})
    engine.answers("POST", f"/containers/{ID}/exec", {"Id": "e1"})
    engine.answers("POST", "/exec/e1/start", None)
    assert typed("exec", "-d", "-e", "A=1", "-w", "/tmp", "-u", "me", "web", "ls", "-l").code == 0
    asked = engine.last("POST", f"/containers/{ID}/exec").document
    assert (asked["Cmd"], asked["Env"], asked["WorkingDir"], asked["User"]) == (["ls", "-l"], ["A=1"], "/tmp", "me")
    assert typed("exec", "-d", "--json", "web", "ls").out == '{"Id":"e1"}\n'


def test_what_is_missing(engine, typed):
    assert typed("exec", "web").code == 1
    assert typed("exec", "--detach-keys=x-y", "web", "ls").err.startswith("husk: invalid detach")
