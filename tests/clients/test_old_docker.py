"""The docker client of Debian 12, which speaks an API of years ago: all that its users do every day works."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.registry import Registry, push_image, tar_of
from tests.support.waiting import until

PLACES = ("/usr/bin/docker", str(Path(__file__).resolve().parents[2] / ".venv/peers/docker"), shutil.which("docker"))
OLD = 24


def old_client() -> str | None:
    for program in filter(None, PLACES):
        if os.access(program, os.X_OK):
            told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            found = re.match(r"Docker version (\d+)", told)
            if found is not None and int(found[1]) <= OLD:
                return program
    return None


class OldDocker:
    def __init__(self, daemon: Daemon, program: str) -> None:
        self.daemon = daemon
        self._program = program
        self.more: dict[str, str] = {}

    def __call__(self, *arguments: str, input: str | None = None, status: int = 0) -> str:
        done = subprocess.run(
            [self._program, *arguments],
            env={**self.daemon.environment, **self.more},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr


@pytest.fixture
def docker(daemon: Daemon) -> Iterator[OldDocker]:
    program = old_client()
    if program is None:
        pytest.skip("needs an old docker client: scripts/setup --test takes Debian 12's")
    yield OldDocker(daemon, program)
    daemon.remove_containers()


def test_the_two_agree_on_a_version(docker: OldDocker) -> None:
    client, server = docker("version", "--format", "{{.Client.APIVersion}} {{.Server.APIVersion}}").split()
    assert client.startswith("1.") and server.startswith("1.")
    assert "Server Version" in docker("info")


def test_the_life_of_a_container(docker: OldDocker) -> None:
    assert docker("run", "--rm", "-i", "busybox", "cat", input="through\n") == "through\n"
    assert docker("run", "--rm", "busybox", "sh", "-c", "exit 7", status=7) == ""
    docker(
        "run", "-d", "--name", "box", "-e", "A=b", "-p", "127.0.0.1::80", "busybox", "sh", "-c", "echo up; sleep 600"
    )
    until(lambda: docker("logs", "box") == "up\n", "the log is there")
    assert docker("exec", "-e", "C=d", "box", "sh", "-c", "echo $A$C") == "bd\n"
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", docker("port", "box", "80"))
    assert "box" in docker("ps") and "sleep" in docker("top", "box")
    assert "box" in docker("stats", "--no-stream", "--format", "{{.Name}}")
    docker("pause", "box")
    docker("unpause", "box")
    docker("update", "--memory", "64m", "--memory-swap", "64m", "box")
    docker("rename", "box", "other")
    docker("restart", "-t", "0", "other")
    docker("stop", "-t", "0", "other")
    assert docker("wait", "other") == "137\n"
    [shown] = json.loads(docker("inspect", "other"))
    assert (shown["State"]["Status"], shown["HostConfig"]["Memory"]) == ("exited", 64 << 20)
    docker("rm", "other")


def test_files_and_images(docker: OldDocker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    docker("create", "--name", "box", "busybox", "cat", "/copied")
    docker("cp", str(tmp_path / "file"), "box:/copied")
    docker("cp", "box:/copied", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "content"
    assert docker("diff", "box") == "A /copied\n"
    docker("commit", "-m", "message", "-c", "ENV X=y", "box", "made:1")
    assert docker("run", "--rm", "made:1") == "content"
    assert "message" in docker("history", "made:1")
    docker("tag", "made:1", "made:2")
    docker("save", "-o", str(tmp_path / "saved.tar"), "made:1", "made:2")
    docker("rm", "box")
    docker("rmi", "made:1", "made:2")
    assert "made:2" in docker("load", "-i", str(tmp_path / "saved.tar"))
    assert docker("run", "--rm", "made:2") == "content"
    docker("rmi", "made:1", "made:2")
    docker("image", "prune", "-f")
    assert "Images" in docker("system", "df")


def test_a_registry(docker: OldDocker) -> None:
    with Registry() as registry:
        push_image(registry, "app", "1", [tar_of({"motd": b"hello"})], {"Cmd": ["/motd"]})
        name = f"{registry.host}/app"
        assert f"Downloaded newer image for {name}:1" in docker("pull", f"{name}:1")
        docker("tag", f"{name}:1", f"{name}:2")
        assert "digest: sha256:" in docker("push", f"{name}:2")
        assert "not found" in docker("pull", f"{name}:none", status=1)
        docker("rmi", f"{name}:1", f"{name}:2")


def test_networks_and_volumes(docker: OldDocker) -> None:
    docker("network", "create", "--subnet", "10.229.7.0/24", "shared")
    docker("volume", "create", "--label", "a=b", "kept")
    docker("run", "-d", "--name", "server", "--network", "shared", "-v", "kept:/data", "busybox", "sleep", "600")
    assert "10.229.7." in docker("run", "--rm", "--network", "shared", "busybox", "nslookup", "server")
    assert "kept" in docker("volume", "ls", "-q", "-f", "label=a=b")
    assert "volume is in use" in docker("volume", "rm", "kept", status=1)
    docker("network", "disconnect", "shared", "server")
    docker("network", "connect", "--alias", "nick", "shared", "server")
    docker("rm", "-f", "server")
    docker("network", "rm", "shared")
    docker("volume", "rm", "kept")
    docker("system", "prune", "-f", "--volumes")


def test_services(docker: OldDocker) -> None:
    docker("swarm", "init", "--advertise-addr", "127.0.0.1")
    try:
        options = ("--replicas", "2", "--stop-grace-period", "0s", "--detach=false", "-q")
        docker("service", "create", "--name", "web", *options, "busybox", "sleep", "600")
        assert "2/2" in docker("service", "ls")
        docker("service", "scale", "web=1", "-d")
        until(lambda: "1/1" in docker("service", "ls"), "one is left")
        assert "Running" in docker("service", "ps", "web")
        docker("service", "rm", "web")
    finally:
        docker("swarm", "leave", "--force")


def test_builds_by_buildkit_with_a_session_beside_the_request(docker: OldDocker, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden")
    context = tmp_path / "context"
    context.mkdir()
    (context / "a").write_text("from the session ")
    (context / "Dockerfile").write_text(
        "FROM busybox AS made\nCOPY a /a\nRUN --mount=type=secret,id=s cat /a /run/secrets/s > /out\n"
        "FROM scratch\nCOPY --from=made /out /\n"
    )
    docker.more = {"DOCKER_BUILDKIT": "1"}
    build = ("build", "--progress=plain", "--secret", f"id=s,src={tmp_path}/secret")
    docker(*build, "-t", "old-build", str(context))
    id = docker(*build, "-q", "-t", "old-build", str(context)).strip()
    assert json.loads(docker("image", "inspect", "old-build"))[0]["Id"] == id
    docker(*build, "-o", f"type=local,dest={tmp_path}/out", str(context))
    assert (tmp_path / "out/out").read_text() == "from the session hidden"
    docker("build", "-t", "from-input", "-", input="FROM busybox\nRUN echo input > /it\n")
    assert docker("run", "--rm", "from-input", "cat", "/it") == "input\n"
    assert "exit code: 4" in docker("build", "-", input="FROM busybox\nRUN exit 4\n", status=1)
    docker("rmi", "old-build", "from-input")
    docker("builder", "prune", "-af")
