import json

SERVER = {"Version": "1", "ApiVersion": "1.51", "MinAPIVersion": "1.24", "Os": "linux", "Platform": {"Name": "Husk"}}


def test_both(engine, typed):
    engine.answers("GET", "/version", {**SERVER, "Components": [{"Name": "crun", "Version": "1.8"}]})
    told = typed("version").out
    assert "Client: Husk" in told and "Server: Husk" in told and "crun:" in told
    assert typed("version", "-f", "{{.Server.Version}}").out == "1\n"
    assert list(json.loads(typed("version", "--json").out)) == ["Client", "Server"]


def test_without_an_engine_this_command_is_told(engine, typed, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", "tcp://example.org:no")
    told = typed("version")
    assert told.code == 1 and "Client: Husk" in told.out and "Server" not in told.out and told.err
