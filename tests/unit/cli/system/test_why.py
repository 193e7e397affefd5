"""`husk doctor CONTAINER` as it is typed, with an engine that answers as the test says."""

import io
import tarfile
from pathlib import Path

import pytest

from husk.cli.kit.place import HostChoice
from husk.cli.system.why import gone
from husk.client.container import Container


def told(engine, **state):
    engine.answers(
        "GET",
        "/containers/web/json",
        {"Id": "c1", "Name": "/web", "Image": "sha256:1", "Config": {"Image": "app", "Cmd": ["x"]}, "State": state},
    )
    engine.answers("GET", "/info", {"Architecture": "x86_64"})
    engine.answers("GET", "/containers/json", [])


def test_one_that_does_not_run(typed, engine):
    told(engine, Status="exited", ExitCode=137, OOMKilled=True)
    done = typed("doctor", "web")
    assert done.code == 1
    assert "FAIL  memory" in done.out and "husk pull app" in done.out
    assert "memory" in typed("doctor", "-q", "web").out


def test_one_that_runs(typed, engine):
    told(engine, Status="running")
    engine.answers("GET", "/images/sha256:1/json", {"Architecture": "amd64"})
    assert typed("doctor", "web").code == 0


def test_no_such_container(typed, engine):
    done = typed("doctor", "none")
    assert done.code == 1 and "Error response from daemon" in done.err


def test_a_container_is_only_looked_at(typed, engine):
    done = typed("doctor", "--fix", "web")
    assert done.code == 1 and "only looked at" in done.err


def test_mounts_that_are_gone_are_only_known_on_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mounts = [
        {"Type": "bind", "Source": str(tmp_path)},
        {"Type": "bind", "Source": str(tmp_path / "gone")},
        {"Type": "volume", "Source": str(tmp_path / "volume")},
    ]
    box = Container.__new__(Container)
    box.attrs = {"Mounts": mounts}
    assert gone(box, HostChoice("unix:///run/husk.sock")) == [str(tmp_path / "gone")]
    assert gone(box, HostChoice("tcp://far.example:2376")) == []


def archived(content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("run.sh")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def test_the_interpreter_of_a_script_is_looked_for(typed, engine):
    told(engine, Status="exited", ExitCode=127)
    box = {"Id": "c1", "Name": "/web", "Config": {"Image": "app", "Entrypoint": ["/run.sh"]}}
    engine.answers("GET", "/containers/web/json", {**box, "State": {"Status": "exited", "ExitCode": 127}})
    engine.answers("GET", "/containers/c1/archive", archived(b"#!/bin/bash -e\necho"))
    assert "the script /run.sh wants /bin/bash" in typed("doctor", "web").out
    engine.answers("GET", "/containers/c1/archive", archived(b"\x7fELF"))
    assert "the script" not in typed("doctor", "web").out
