import json

ID = "sha256:" + "1" * 64


def test_save(engine, typed, tmp_path):
    engine.answers("GET", "/images/get", b"archive")
    assert typed("save", "-o", f"{tmp_path}/file", "a", "b:1").code == 0
    assert (tmp_path / "file").read_bytes() == b"archive"
    assert engine.last("GET", "/images/get").all["names"] == ["a", "b:1"]
    assert typed("save", "a").out == "archive"
    assert typed("save", "-o", f"{tmp_path}/none/file", "a").code == 1


def test_load(engine, typed, tmp_path):
    (tmp_path / "file").write_bytes(b"archive")
    engine.answers("POST", "/images/load", b'{"stream":"Loaded image: a:1\\n"}\n')
    assert typed("load", "-i", f"{tmp_path}/file").out == "Loaded image: a:1\n"
    assert engine.last("POST", "/images/load").body == b"archive"
    assert json.loads(typed("load", "--json", "-i", f"{tmp_path}/file").out) == [{"Name": "a:1"}]
    missing = typed("load", "-i", f"{tmp_path}/none")
    assert missing.code == 1 and "cannot read" in missing.err


def test_import(engine, typed, monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"archive")
    engine.answers("POST", "/images/create", b'{"status":"sha256:%s"}\n' % (b"1" * 64))
    engine.answers("GET", f"/images/{ID}/json", {"Id": ID})
    assert typed("import", "-c", "CMD a", f"{tmp_path}/file", "r:1").out == f"{ID}\n"
    asked = engine.last("POST", "/images/create")
    assert (asked.query["repo"], asked.query["tag"], asked.body) == ("r", "1", b"archive")
    assert typed("import", "https://example.org/a.tar").code == 0
    assert engine.last("POST", "/images/create").query["fromSrc"] == "https://example.org/a.tar"
