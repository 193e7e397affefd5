import json

ID = "ab" * 32


def test_processes_of_one(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": ID})
    engine.answers("GET", f"/containers/{ID}/top", {"Titles": ["PID", "CMD"], "Processes": [["7", "sleep 9"]]})
    assert typed("top", "web", "-o", "pid").out.splitlines() == [
        "PID                 CMD",
        "7                   sleep 9",
    ]
    assert engine.last("GET", f"/containers/{ID}/top").query == {"ps_args": "-o pid"}
    for words in (("--json", "web", "-x"), ("web", "-x", "--json")):
        assert json.loads(typed("top", *words).out)["Titles"] == ["PID", "CMD"]
        assert engine.last("GET", f"/containers/{ID}/top").query == {"ps_args": "-x"}


def test_all_in_a_pipe(engine, typed):
    engine.answers("GET", "/containers/json", [{"Id": ID, "Names": ["/web"], "State": "exited"}])
    assert "web" in typed("top").out
    assert json.loads(typed("top", "--json").out) == [{"Id": ID, "Name": "web"}]
