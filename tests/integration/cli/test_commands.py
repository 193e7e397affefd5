"""The other commands with a real daemon: docker's columns beside ours, copies, builds, screens, ssh and completions."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon
from tests.support.husk import at_terminal, environment, husk
from tests.support.terminal import Terminal

_SSH = """#!/bin/sh
while [ "$1" != far.example ]; do shift; done
shift
export HUSK_HOST={host}
exec sh -c "$*"
"""


def test_the_columns_are_dockers(daemon: Daemon) -> None:
    husk(
        daemon, "run", "-d", "--name", "web", "-p", "80", "-v", "/data", "busybox", "sh", "-c", "sleep 1000 # and more"
    )
    husk(daemon, "run", "--name", "old", "busybox", "false", code=1)
    husk(daemon, "tag", "busybox", "mine:1")
    for line in (
        ["ps", "-a"],
        ["ps", "-a", "--no-trunc"],
        ["ps", "-aq"],
        ["ps", "--format", "table {{.ID}}\\t{{.Names}}\\t{{.Mounts}}"],
        ["images"],
        ["images", "--digests", "mine"],
        ["top", "web"],
        ["inspect", "-f", "{{json .State.Running}} {{.HostConfig.NetworkMode}}", "web"],
        ["system", "df"],
    ):
        ours, dockers = (_without_age(done.stdout) for done in (husk(daemon, *line), daemon.docker(*line)))
        # Docker's command keeps the names of an image in a map of Go: their order is another one each time.
        assert (sorted(ours) == sorted(dockers)) if line == ["images"] else (ours == dockers), line
    husk(daemon, "rmi", "mine:1")


def test_a_build_does_not_send_the_engine_its_own_files(daemon: Daemon) -> None:
    (daemon.directory / "Dockerfile").write_text("FROM busybox\nCOPY Dockerfile /\n")
    try:
        refused = husk(daemon, "build", "-t", "own:1", str(daemon.directory), code=1)
        assert f"the engine keeps its files in {daemon.config.data_root}, which is in the context" in refused.stderr
        (daemon.directory / ".dockerignore").write_text("*\n!Dockerfile\n")
        husk(daemon, "build", "-t", "own:1", str(daemon.directory))
        husk(daemon, "rmi", "own:1")
    finally:
        for name in ("Dockerfile", ".dockerignore"):
            (daemon.directory / name).unlink(missing_ok=True)


def _without_age(table: str) -> list[str]:
    """A second may pass between both."""
    age = r"(Less than a second|About a minute|\d+ (second|minute)s?)( ago)?"
    return [re.sub(rf"(Up )?{age}", "~", " ".join(line.split())) for line in table.splitlines()]


def test_files_builds_and_what_is_known(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "context").mkdir()
    (tmp_path / "context/Dockerfile").write_text("FROM busybox\nARG V\nCOPY . /src\nRUN echo $V > /v\nCMD cat /v\n")
    husk(daemon, "build", "-t", "app:1", "--build-arg", "V=two", str(tmp_path / "context"))
    assert husk(daemon, "run", "--name", "app", "app:1").stdout == "two\n"
    husk(daemon, "cp", "app:/src", str(tmp_path / "out"))
    assert (tmp_path / "out/Dockerfile").read_text().startswith("FROM busybox")
    husk(daemon, "cp", f"{tmp_path}/out/.", "app:/new")
    assert (
        b"FROM"
        in subprocess.run(
            [sys.executable, "-m", "husk", "cp", "app:/new/Dockerfile", "-"],
            env=environment(daemon),
            capture_output=True,
        ).stdout
    )
    events = husk(daemon, "events", "--json", "--since", "5m", "--until", "0s", "-f", "container=app").stdout
    assert {"create", "start", "die"} <= {json.loads(line)["Action"] for line in events.splitlines()}
    assert json.loads(husk(daemon, "stats", "--no-stream", "--json", "app").stdout)["Name"] == "app"
    pruned = json.loads(husk(daemon, "prune", "-f", "--json").stdout)
    assert len(pruned["ContainersDeleted"]) == 1
    husk(daemon, "rmi", "app:1")


def test_a_live_screen(daemon: Daemon) -> None:
    husk(daemon, "run", "-d", "--name", "web", "busybox", "sleep", "1000")
    with at_terminal(daemon, "top") as terminal:
        terminal.expect(b"1 containers")
        terminal.expect(b"web")
        terminal.type(b"q")
        assert terminal.wait() == 0
    with at_terminal(daemon, "ps", columns=140) as terminal:
        terminal.expect("─".encode())
        assert terminal.wait() == 0


def test_ssh_and_completions(daemon: Daemon, tmp_path: Path) -> None:
    husk(daemon, "run", "-d", "--name", "web", "busybox", "sleep", "1000")
    husk(daemon, "tag", "busybox", "mine/app:1")
    (tmp_path / "ssh").write_text(_SSH.format(host=daemon.host))
    (tmp_path / "husk").write_text(f'#!/bin/sh\nexec {sys.executable} -m husk "$@"\n')
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    path: dict[str, Any] = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert (
        husk(daemon, "-H", "ssh://me@far.example", "exec", "-i", "web", "cat", input="far", more=path).stdout == "far"
    )
    line: dict[str, Any] = {"_HUSK_COMPLETE": "bash_complete", "COMP_WORDS": "husk stop ", "COMP_CWORD": "2"}
    assert husk(daemon, more=line).stdout == "plain,web\n"
    with Terminal(["bash", "--norc", "-i"], {**environment(daemon, **path), "PS1": "> ", "TERM": "dumb"}) as terminal:
        terminal.type(b'eval "$(husk completion bash)"; echo re"ad"y\n')
        terminal.expect(b"ready")
        terminal.type(b"\x15husk logs w\t")
        terminal.expect(b"husk logs web ")
        # Bash takes words apart at colons; the image's name is one word nevertheless.
        terminal.type(b"\x15husk rmi mine/app:\t")
        terminal.expect(b"husk rmi mine/app:1 ")
