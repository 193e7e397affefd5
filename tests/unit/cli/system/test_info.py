import json

FOUND = {
    "Containers": 2,
    "ServerVersion": "1",
    "Plugins": {"Volume": ["local"]},
    "MemTotal": 1 << 30,
    "Warnings": ["mind it"],
}


def test_lines_documents_and_templates(engine, typed):
    engine.answers("GET", "/info", FOUND)
    code, out, err = typed("info")
    assert code == 0 and err == "mind it\n"
    assert "Containers: 2\n" in out and " Volume: local\n" in out and "Total Memory: 1GiB\n" in out
    assert json.loads(typed("info", "--json").out) == FOUND
    assert typed("info", "-f", "{{.ServerVersion}}").out == "1\n"
