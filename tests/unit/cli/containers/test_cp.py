import base64
import io
import json
import tarfile

import pytest

from husk.api.http.response import Response, fields
from husk.cli.containers.cp import Where, departure, landing, where
from husk.errors import InvalidParameter, NotFound

ID = "ab" * 32
ARCHIVE = f"/containers/{ID}/archive"


def told(name: str, mode: int = 0o644, link: str = "") -> Response:
    stat = {"name": name, "size": 1, "mode": mode, "mtime": "2026-01-01T00:00:00Z", "linkTarget": link}
    header = base64.b64encode(json.dumps(stat).encode()).decode()
    return Response(200, b"", fields({"X-Docker-Container-Path-Stat": header}))


@pytest.fixture
def box(engine):
    engine.answers("GET", "/containers/web/json", {"Id": ID})
    engine.answers("PUT", ARCHIVE, None)
    return engine


def names(engine) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(engine.last("PUT", ARCHIVE).body)) as archive:
        return archive.getnames()


def test_sides():
    assert where("web:/a:b") == Where("web", "/a:b")
    assert where("./a:b") == Where("", "./a:b")
    assert where("-") == Where("", "-")


def test_where_things_come_to_lie(tmp_path):
    (tmp_path / "file").touch()
    place = str(tmp_path)
    assert landing(place, True, "d", False) == f"{place}/d"
    assert landing(place, True, "d", True) == place
    assert landing(f"{place}/file", False, "f", False) == f"{place}/file"
    assert landing(f"{place}/new", True, "d", False) == f"{place}/new"
    assert landing(place, True, "/", False) == place, "what is in the root of a container comes there, not to ours"
    (tmp_path / "link").symlink_to(tmp_path)
    assert landing(f"{place}/link", True, "d", True) == place
    for name in ("..", "", "a/b", "/etc"):
        with pytest.raises(InvalidParameter, match="no name of a file"):
            landing(place, True, name, False)
    with pytest.raises(InvalidParameter, match="which is a file"):
        landing(f"{place}/file", True, "d", False)
    for missing in (f"{place}/new/", f"{place}/no/where"):
        with pytest.raises(NotFound, match="make it first"):
            landing(missing, False, "f", False)
    assert departure(f"{place}/.", False) == (True, True, tmp_path.name)
    with pytest.raises(NotFound):
        departure(f"{place}/none", False)


def test_into_a_container(box, typed, tmp_path):
    (tmp_path / "f").write_text("x")
    box.answers("HEAD", ARCHIVE, told("tmp", 1 << 31))
    assert typed("cp", f"{tmp_path}/f", "web:/tmp").code == 0
    assert (box.last("PUT", ARCHIVE).query["path"], names(box)) == ("/tmp", ["f"])
    box.answers("HEAD", ARCHIVE, Response(404, b'{"message":"no"}'))
    assert json.loads(typed("cp", "--json", f"{tmp_path}/f", "web:/tmp/g").out)["Target"] == "web:/tmp/g"
    assert (box.last("PUT", ARCHIVE).query["path"], names(box)) == ("/tmp", ["g"])
    box.answers("HEAD", ARCHIVE, told("g"))
    assert typed("cp", f"{tmp_path}", "web:/tmp/g").err.startswith("husk: cannot copy a directory")


def test_out_of_a_container(box, typed, tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        entry = tarfile.TarInfo("f")
        entry.size = 2
        made.addfile(entry, io.BytesIO(b"hi"))
    box.answers("HEAD", ARCHIVE, told("l", 1 << 27, "/f"), told("f"))
    box.answers("GET", ARCHIVE, archive.getvalue())
    assert typed("cp", "-L", "web:/l", str(tmp_path)).code == 0
    assert (tmp_path / "f").read_text() == "hi"
    assert "hi" in typed("cp", "web:/f", "-").out


def test_both_sides_here(typed):
    assert typed("cp", "a", "b").code == 1
    assert typed("cp", "a:/x", "b:/x").code == 1
