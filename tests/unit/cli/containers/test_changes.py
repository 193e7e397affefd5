import json

from tests.support.fake_engine import failed

PORTS = {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}, {"HostIp": "::", "HostPort": "8080"}], "9/udp": None}


def box(engine, **more):
    engine.answers("GET", "/containers/web/json", {"Id": "c1", "Name": "/web", **more})


def test_ports(engine, typed):
    box(engine, NetworkSettings={"Ports": PORTS})
    assert typed("port", "web").out == "80/tcp -> 0.0.0.0:8080\n80/tcp -> [::]:8080\n"
    assert typed("port", "web", "80").out == "0.0.0.0:8080\n[::]:8080\n"
    assert typed("port", "web", "9/udp") == (1, "", "no public port '9/udp' published for web\n")
    assert list(json.loads(typed("port", "--json", "web").out)) == ["80/tcp", "9/udp"]


def test_diff(engine, typed):
    box(engine)
    engine.answers("GET", "/containers/c1/changes", [{"Path": "/a", "Kind": 1}, {"Path": "/b", "Kind": 2}])
    assert typed("diff", "web").out == "A /a\nD /b\n"


def test_commit(engine, typed):
    box(engine)
    engine.answers("POST", "/commit", {"Id": "sha256:1"})
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1"})
    assert typed("commit", "-m", "why", "-c", 'CMD ["a"]', "--pause=false", "web", "r:1").out == "sha256:1\n"
    asked = engine.last("POST", "/commit").query
    assert (asked["repo"], asked["tag"], asked["comment"], asked["pause"]) == ("r", "1", "why", "0")


def test_an_export_is_whole_or_not_there(engine, typed, tmp_path):
    box(engine)
    engine.answers("GET", "/containers/c1/export", b"archive")
    assert typed("export", "-o", f"{tmp_path}/file", "web").code == 0
    assert (tmp_path / "file").read_bytes() == b"archive"
    engine.answers("GET", "/containers/c1/export", failed(500, "no"))
    assert typed("export", "-o", f"{tmp_path}/other", "web").code == 1
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_prune(engine, typed):
    engine.answers("POST", "/containers/prune", {"ContainersDeleted": ["c1"], "SpaceReclaimed": 1000})
    assert typed("container", "prune", "-f").out == "Deleted Containers:\nc1\n\nTotal reclaimed space: 1kB\n"
    asked = typed("container", "prune", given="n\n")
    assert asked.code == 0 and "will remove all stopped containers" in asked.err and asked.out == ""
