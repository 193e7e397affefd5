import json

from tests.support.fake_engine import failed

LINES = b"""{"status":"Pulling from library/busybox","id":"latest"}
{"status":"Downloading","id":"abc","progressDetail":{"current":1,"total":2}}
{"status":"Status: Downloaded newer image for busybox:latest"}
"""


def test_in_a_pipe(engine, typed):
    engine.answers("POST", "/images/create", LINES)
    assert typed("pull", "busybox").out.splitlines() == [
        "Using default tag: latest",
        "latest: Pulling from library/busybox",
        "Status: Downloaded newer image for busybox:latest",
        "docker.io/library/busybox:latest",
    ]
    assert typed("pull", "-q", "busybox").out == "docker.io/library/busybox:latest\n"


def test_in_json(engine, typed):
    engine.answers("POST", "/images/create", LINES)
    engine.answers("GET", "/images/busybox:1/json", {"Id": "sha256:1"})
    *steps, end = [json.loads(line) for line in typed("pull", "--json", "busybox:1").out.splitlines()]
    assert steps[1] == {"Id": "abc", "Status": "Downloading", "Current": 1, "Total": 2}
    assert end == {"Name": "docker.io/library/busybox:1", "Id": "sha256:1"}


def test_what_fails(engine, typed):
    engine.answers("POST", "/images/create", failed(404, "pull access denied for x"))
    assert typed("pull", "x") == (
        1,
        "Using default tag: latest\n",
        "Error response from daemon: pull access denied for x\n",
    )
    engine.answers("POST", "/images/create", b'{"error":"it broke off","errorDetail":{"message":"it broke off"}}\n')
    assert typed("pull", "x").err == "it broke off\n"
