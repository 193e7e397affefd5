import io
import json
import tarfile
from contextlib import ExitStack

import pytest

from husk.cli.images.build import options_of as read
from husk.errors import InvalidParameter

NONE = {
    **dict.fromkeys(("build_arg", "label", "add_host", "cache_from", "security_opt", "tag", "ulimit"), ()),
    **dict.fromkeys(("cgroup_parent", "cpuset_cpus", "cpuset_mems", "dockerfile", "memory", "memory_swap"), ""),
    **dict.fromkeys(("network", "platform", "shm_size", "target"), ""),
    **dict.fromkeys(("cpu_period", "cpu_quota", "cpu_shares"), None),
    **dict.fromkeys(("no_cache", "pull", "squash"), False),
}
NOTHING = io.BytesIO()
LINES = b"""{"stream":"Step 1/1 : FROM busybox\\n"}
{"status":"Pulling","id":"abc"}
{"aux":{"ID":"sha256:1"}}
{"stream":"Successfully built 1\\n"}
"""


def options_of(flags, stdin):
    with ExitStack() as kept:
        return read(flags, stdin, kept)


def test_flags():
    assert options_of({**NONE, "path": "."}, NOTHING) == {"path": "."}
    flags = {"path": "p", "build_arg": ("A=1", "B"), "tag": ("a", "b"), "add_host": ("h=1.2.3.4",)}
    found = options_of({**NONE, **flags}, NOTHING)
    assert found == {
        "path": "p",
        "buildargs": {"A": "1", "B": None},
        "tag": ["a", "b"],
        "extra_hosts": ["h:1.2.3.4"],
    }


def test_what_comes_on_stdin():
    def given(data: bytes):
        return options_of({**NONE, "path": "-"}, io.BytesIO(data))

    assert given(b"FROM busybox\n") == {"fileobj": b"FROM busybox\n", "custom_context": False}
    assert given(b"\x1f\x8b...")["custom_context"] is True
    with pytest.raises(InvalidParameter, match="stdin is empty"):
        given(b"")


def test_limits_of_steps():
    found = options_of({**NONE, "path": ".", "memory": "64m", "cpu_shares": 5, "ulimit": ("nofile=1:2",)}, NOTHING)
    assert found == {"path": ".", "container_limits": {"memory": "64m", "cpushares": 5}, "ulimits": {"nofile": (1, 2)}}


def test_a_dockerfile_is_named_from_the_current_directory(engine, typed, tmp_path, monkeypatch):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/Dockerfile.dev").write_text("FROM busybox\n")
    monkeypatch.chdir(tmp_path)
    engine.answers("POST", "/build", LINES)
    assert typed("build", "-f", "app/Dockerfile.dev", "app").code == 0
    assert engine.last("POST", "/build").query["dockerfile"] == "Dockerfile.dev"


def test_a_dockerfile_on_stdin(engine, typed, tmp_path):
    (tmp_path / "file").write_text("x")
    engine.answers("POST", "/build", LINES)
    assert typed("build", "-f", "-", str(tmp_path), given="FROM busybox\n").code == 0
    sent = engine.last("POST", "/build")
    with tarfile.open(fileobj=io.BytesIO(sent.body)) as archive:
        content = archive.extractfile(sent.query["dockerfile"])
        assert content is not None and content.read() == b"FROM busybox\n"
        assert "file" in archive.getnames()
    assert "can't use stdin for both" in typed("build", "-f", "-", "-").err


def test_a_build_that_is_left_says_so(engine, typed, tmp_path, monkeypatch):
    def left(*_):
        raise SystemExit(130)

    monkeypatch.setattr("husk.cli.images.build.ask", left)
    (tmp_path / "Dockerfile").write_text("FROM busybox\n")
    told = typed("build", str(tmp_path))
    assert told.code == 130 and "the build was cancelled" in told.err


def test_what_is_told(engine, typed, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM busybox\n")
    engine.answers("POST", "/build", LINES)
    told = typed("build", "-t", "a:1", "--iidfile", f"{tmp_path}/id", str(tmp_path))
    assert told == (0, "Step 1/1 : FROM busybox\nabc: Pulling\nSuccessfully built 1\n", "")
    assert (tmp_path / "id").read_text() == "sha256:1"
    assert typed("build", "-q", str(tmp_path)).out == "sha256:1\n"
    first, *_, last = typed("build", "--json", str(tmp_path)).out.splitlines()
    assert json.loads(first) == {"Text": "Step 1/1 : FROM busybox\n", "Step": 1, "Steps": 1}
    assert json.loads(last) == {"Id": "sha256:1"}
    engine.answers("POST", "/build", b'{"error":"it returned 3","errorDetail":{"code":3,"message":"it returned 3"}}\n')
    assert typed("build", str(tmp_path)) == (3, "", "it returned 3\n")


def test_the_engines_own_files_are_not_sent(engine, typed, tmp_path, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", "unix:///run/husk.sock")
    (tmp_path / "Dockerfile").write_text("FROM busybox\n")
    engine.answers("POST", "/build", LINES)
    engine.answers("GET", "/info", {"DockerRootDir": str(tmp_path / "data")})
    refused = typed("build", str(tmp_path))
    assert (refused.code, "which is in the context" in refused.err) == (1, True)
    monkeypatch.setenv("HUSK_HOST", "tcp://elsewhere:2375")  # that is a directory of another machine
    assert typed("build", str(tmp_path)).code == 0
    monkeypatch.setenv("HUSK_HOST", "unix:///run/husk.sock")
    (tmp_path / ".dockerignore").write_text("data\n")
    assert typed("build", str(tmp_path)).code == 0
