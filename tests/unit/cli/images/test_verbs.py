import json

from tests.support.fake_engine import failed


def test_rmi(engine, typed):
    engine.answers("DELETE", "/images/a", [{"Untagged": "a:latest"}, {"Deleted": "sha256:1"}])
    engine.answers("DELETE", "/images/b", failed(404, "No such image: b:latest"))
    assert typed("rmi", "a", "b") == (
        1,
        "Untagged: a:latest\nDeleted: sha256:1\n",
        "Error response from daemon: No such image: b:latest\n",
    )
    [done, missed] = json.loads(typed("rmi", "--json", "a", "b").out)
    assert done["Removed"][0] == {"Untagged": "a:latest"} and missed["Error"].startswith("No such image")


def test_tag(engine, typed):
    engine.answers("POST", "/images/a/tag", None)
    engine.answers("GET", "/images/b:1/json", {"Id": "sha256:1"})
    assert typed("tag", "a", "b:1") == (0, "", "")
    assert json.loads(typed("tag", "a", "b:1", "--json").out) == {"Name": "b:1", "Id": "sha256:1"}


def test_push(engine, typed):
    lines = b'{"status":"The push refers to repository [r/a]"}\n{"aux":{"Tag":"latest","Digest":"sha256:9"}}\n'
    engine.answers("POST", "/images/r.io/a/push", lines)
    assert typed("push", "r.io/a").out == "Using default tag: latest\nThe push refers to repository [r/a]\n"
    assert typed("push", "-q", "r.io/a").out == "r.io/a:latest\n"
    *_, end = typed("push", "--json", "r.io/a:1").out.splitlines()
    assert json.loads(end) == {"Name": "r.io/a:1", "Digest": "sha256:9"}
