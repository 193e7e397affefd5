import json
import re

LINE = (
    b'{"Type":"container","Action":"die","Actor":{"ID":"abc","Attributes":{"name":"web","exitCode":"1"}},'
    b'"scope":"local","time":60,"timeNano":60000000005}\n'
)


def test_sentences_documents_and_templates(engine, typed, monkeypatch):
    engine.answers("GET", "/events", LINE)
    told = typed("events", "--since", "1", "-f", "type=container").out
    assert told.endswith("container die abc (exitCode=1, name=web)\n") and ".000000005" in told
    asked = engine.last("GET", "/events").query
    assert asked["since"] == "1" and json.loads(asked["filters"]) == {"type": ["container"]}
    document = json.loads(typed("events", "--json").out)
    assert (document["Action"], document["Actor"]["Attributes"]["name"], document["TimeNano"]) == (
        "die",
        "web",
        60000000005,
    )
    assert typed("events", "--format", "{{.Type}} {{.Actor.Attributes.name}}").out == "container web\n"


def test_at_a_terminal_an_event_is_one_line_with_names(engine, typed, monkeypatch):
    monkeypatch.setattr("husk.cli.system.events.at_terminal", lambda: True)
    attributes = {"container": "c1", "name": "back\x1b[2J", "type": "bridge"}
    told = [
        {"Type": "network", "Action": "connect", "Actor": {"ID": "n1", "Attributes": attributes}, "timeNano": 10**9},
        {"Type": "container", "Action": "die", "Actor": {"ID": "c1", "Attributes": {"name": "web", "exitCode": "3"}}},
        {"Type": "odd\x1b]0;x", "Action": "a", "Actor": {"ID": "x"}},
    ]
    engine.answers("GET", "/events", "\n".join(map(json.dumps, told)).encode())
    engine.answers("GET", "/containers/c1/json", {"Id": "c1", "Name": "/web"})
    first, second, third = (re.sub(r"\x1b\[\d*m", "", line) for line in typed("events").out.splitlines())
    assert first.split(" ", 1)[1] == "network   connect back\\x1b[2J  container web"
    assert "odd\\x1b]0;x" in third
    assert second.split(" ", 1)[1] == "container die web  exitCode 3"
