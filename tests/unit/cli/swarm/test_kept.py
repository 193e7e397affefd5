import base64
import json

SECRET = {
    "ID": "k1",
    "CreatedAt": "2026-01-01T00:00:00.123456789Z",
    "Spec": {"Name": "key", "Labels": {"a": "b"}},
}


def test_secrets(engine, typed, tmp_path):
    (tmp_path / "file").write_bytes(b"\x00secret")
    engine.answers("POST", "/secrets/create", {"ID": "k1"})
    engine.answers("GET", "/secrets/k1", SECRET)
    assert typed("secret", "create", "-l", "a=b", "key", f"{tmp_path}/file").out == "k1\n"
    asked = engine.last("POST", "/secrets/create").document
    assert (asked["Name"], base64.b64decode(asked["Data"]), asked["Labels"]) == ("key", b"\x00secret", {"a": "b"})
    assert "cannot read" in typed("secret", "create", "key", f"{tmp_path}/none").err


def test_listing(engine, typed):
    engine.answers("GET", "/secrets", [SECRET])
    engine.answers("GET", "/configs", [SECRET])
    assert typed("secret", "ls").out.splitlines()[0].split() == ["ID", "NAME", "DRIVER", "CREATED", "UPDATED"]
    assert typed("config", "ls").out.splitlines()[0].split() == ["ID", "NAME", "CREATED", "UPDATED"]
    assert typed("config", "ls", "--format", "{{.Name}} {{.Labels}}").out == "key a=b\n"
    assert json.loads(typed("secret", "ls", "--json").out) == [SECRET]
