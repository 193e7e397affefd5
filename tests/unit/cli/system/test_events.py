import json

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
