"""Containers that somebody else has frozen, and runtimes that die in the middle of their work."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.lifecycle import create, ended, inspect, post, started, status
from tests.support.waiting import until

_TREES = (("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN"), ("/sys/fs/cgroup", "cgroup.freeze", "1"))


def freeze(daemon: Daemon, container: str) -> None:
    """As an administrator does by hand."""
    lines = Path(f"/proc/{inspect(daemon, container)['State']['Pid']}/cgroup").read_text().splitlines()
    for tree, name, word in _TREES:
        for line in lines:
            file = Path(f"{tree}{line.split(':', 2)[2]}/{name}")
            if file.exists():
                file.write_text(word)
                return
    pytest.skip("no freezer here")


@pytest.mark.parametrize("end", ["kill", "stop?t=0", "remove"])
def test_what_others_have_frozen_can_be_ended(daemon: Daemon, end: str):
    container = started(daemon)
    freeze(daemon, container)
    if end == "remove":
        assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204
    else:
        assert post(daemon, container, end).status == 204
        assert ended(daemon, container) == 137


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon with the runtime `mortal`, and where to write the verb in which it is to die."""
    verb, program, settings = tmp_path / "verb", tmp_path / "mortal", tmp_path / "daemon.json"
    real = "runc" if os.environ.get("HUSK_TEST_RUNTIME") == "runc" else "crun"
    # In `create` and `exec` it leaves a process behind that sees other mounts and holds its messages open.
    program.write_text(
        f"""#!/bin/sh
verb=$(cat {verb} 2>/dev/null)
for word; do
    [ "$word" = "$verb" ] || continue
    [ "$verb" = pause ] && {real} "$@"
    [ "$verb" = pause ] || unshare --mount sleep 1000 &
    sleep 0.2
    kill -9 $$
done
exec {real} "$@"
"""
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    settings.write_text(json.dumps({"runtimes": {"mortal": {"path": str(program)}}}))
    with Daemon("--config-file", str(settings)) as daemon:
        yield daemon, verb


def test_a_runtime_that_dies_in_its_work_is_told_of_soon(mortal: tuple[Daemon, Path]):
    daemon, verb = mortal
    container = create(daemon, "sleep", "1000", HostConfig={"Runtime": "mortal"})
    verb.write_text("create")
    answer = post(daemon, container, "start")
    assert answer.status == 400 and "mortal create did not finish: it died" in answer.message
    verb.unlink()
    assert post(daemon, container, "start").status == 204
    verb.write_text("exec")
    made = daemon.http("POST", f"/containers/{container}/exec", {"Cmd": ["true"], "AttachStdout": True}).json()["Id"]
    assert b"mortal exec did not finish: it died" in daemon.http("POST", f"/exec/{made}/start", {}).body
    verb.write_text("pause")
    assert post(daemon, container, "pause").status == 500
    verb.unlink()
    assert status(daemon, container) == "running"
    until(lambda: daemon.docker("exec", container, "echo", "x").stdout == "x\n", "it is not frozen any more")
    assert post(daemon, container, "kill").status == 204
    daemon.remove_containers()
