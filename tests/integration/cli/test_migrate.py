"""`husk migrate` from a real dockerd and a real podman: images, volumes, networks, and a file of containers."""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.husk import husk
from tests.support.podman import Podman

# Out of Debian unstable, where it could be had (scripts/setup --test).
COMPOSE = Path(__file__).parents[3] / ".venv/docker/cli-plugins/docker-compose"


@pytest.fixture
def podman() -> Iterator[Podman]:
    if reason := Podman.missing():
        pytest.skip(reason)
    with Podman() as podman:
        yield podman


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """The files of an image."""
    with tarfile.open(tmp_path / "image.tar", mode="w") as archive:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"world"))
    return str(tmp_path / "image.tar")


def fill(volume: Path) -> None:
    (volume / "mine").write_text("content")
    os.chown(volume / "mine", 1234, 4321)
    (volume / "mine").chmod(0o4751)
    os.setxattr(volume / "mine", "user.colour", b"blue")
    os.link(volume / "mine", volume / "same")
    (volume / "link").symlink_to("mine")


def assert_filled(volume: Path) -> None:
    status = (volume / "mine").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 4321, 0o4751)
    assert (volume / "mine").read_text() == "content" and os.getxattr(volume / "mine", "user.colour") == b"blue"
    assert (volume / "same").stat().st_ino == status.st_ino and os.readlink(volume / "link") == "mine"


def mountpoint(daemon: Daemon, name: str) -> Path:
    return Path(json.loads(daemon.docker("volume", "inspect", name).stdout)[0]["Mountpoint"])


def test_from_docker(fresh_daemon: Daemon, dockerd: Dockerd, archive: str, tmp_path: Path) -> None:
    identity = dockerd.docker("import", archive, "mine:1").stdout.strip()
    dockerd.docker("tag", "mine:1", "mine:2")
    dockerd.docker("volume", "create", "--label", "a=b", "data")
    volume = Path(json.loads(dockerd.docker("volume", "inspect", "data").stdout)[0]["Mountpoint"])
    fill(volume)
    dockerd.docker("network", "create", "--label", "x=y", "inner")
    settings = [
        "-v",
        "data:/data:ro",
        "-p",
        "127.0.0.1:28282:80",
        "-e",
        "PRICE=5$",
        "-m",
        "64m",
        "--restart=on-failure:3",
    ]
    place = ["--network", "inner", "--network-alias", "www"]
    dockerd.docker("create", "--name", "web", *place, *settings, "mine:1", "/hello", "a b")
    file = tmp_path / "compose.yaml"
    migrate = ["migrate", "--from", "docker", "--from-host", dockerd.host, "--compose", str(file)]
    done = husk(fresh_daemon, *migrate).stdout
    assert "image mine:1" in done and "volume data" in done and "network inner" in done

    shown = json.loads(fresh_daemon.docker("image", "inspect", "mine:1").stdout)[0]
    assert shown["Id"] == identity and sorted(shown["RepoTags"]) == ["mine:1", "mine:2"]
    assert_filled(mountpoint(fresh_daemon, "data"))
    network = json.loads(fresh_daemon.docker("network", "inspect", "inner").stdout)[0]
    assert network["Labels"] == {"x": "y"}

    written = yaml.safe_load(file.read_text())
    service = written["services"]["web"]
    assert service["image"] == "mine:1" and service["command"] == ["/hello", "a b"]
    assert service["environment"] == ["PRICE=5$$"] and service["mem_limit"] == 64 << 20
    assert service["ports"] == ["127.0.0.1:28282:80/tcp"] and service["restart"] == "on-failure:3"
    assert service["volumes"] == [{"type": "volume", "source": "data", "target": "/data", "read_only": True}]
    assert service["networks"] == {"inner": {"aliases": ["www"]}}
    assert written["volumes"] == {"data": {"external": True}} and written["networks"] == {"inner": {"external": True}}
    assert file.stat().st_mode & 0o777 == 0o600
    if COMPOSE.exists():
        read = subprocess.run([COMPOSE, "-f", file, "config", "--quiet"], capture_output=True, text=True)
        assert read.returncode == 0, f"{read.stderr}\n{file.read_text()}"

    # What is here is neither fetched again nor touched, and nothing was taken away there.
    (mountpoint(fresh_daemon, "data") / "mine").write_text("newer")
    again = husk(fresh_daemon, *migrate).stdout
    assert "image mine:1: is here" in again and "volume data: is here" in again and "network inner: is here" in again
    assert (mountpoint(fresh_daemon, "data") / "mine").read_text() == "newer"
    assert dockerd.docker("ps", "-aq").stdout and (volume / "mine").read_text() == "content"
    dockerd.docker("rm", "web")
    dockerd.docker("network", "rm", "inner")


def test_from_podman(fresh_daemon: Daemon, podman: Podman, archive: str, tmp_path: Path) -> None:
    podman("import", archive, "localhost/mine:1")
    podman("volume", "create", "data")
    fill(Path(podman.text("volume", "inspect", "--format", "{{.Mountpoint}}", "data")))
    podman("create", "--name", "web", "--network", "none", "-v", "data:/data", "localhost/mine:1", "/hello")
    file = tmp_path / "compose.yaml"
    with podman.service() as address:
        migrate = ["migrate", "--from", "podman", "--from-host", address, "--compose", str(file)]
        husk(fresh_daemon, *migrate)
        assert "image localhost/mine:1: is here" in husk(fresh_daemon, *migrate).stdout
    assert (
        fresh_daemon.docker("image", "inspect", "-f", "{{.RepoTags}}", "localhost/mine:1").stdout
        == "[localhost/mine:1]\n"
    )
    assert_filled(mountpoint(fresh_daemon, "data"))
    service = yaml.safe_load(file.read_text())["services"]["web"]
    assert service["image"] == "localhost/mine:1" and service["network_mode"] == "none"
    assert podman.text("ps", "-aq")


def test_one_that_does_not_answer(daemon: Daemon, tmp_path: Path) -> None:
    done = husk(daemon, "migrate", "--from", "docker", "--from-host", f"unix://{tmp_path}/none", code=1)
    assert "docker does not answer" in done.stderr and "--from-host" in done.stderr
    same = husk(daemon, "migrate", "--from", "docker", "--from-host", daemon.host, code=1)
    assert "both are the same engine" in same.stderr
