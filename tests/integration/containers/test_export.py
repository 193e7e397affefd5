"""`docker export`: the whole root file system as a tar."""

import io
import subprocess
import tarfile
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.tars import content, entries


def export(daemon: Daemon, name: str) -> bytes:
    done = subprocess.run(["docker", "export", name], env=daemon.environment, capture_output=True, check=True)
    return done.stdout


def test_a_container_that_has_ended(daemon: Daemon):
    daemon.docker(
        "run", "--name", "box", "busybox", "sh", "-c", "echo x >/new; rm /etc/group; ln /new /twin; mkfifo /p"
    )
    archive = export(daemon, "box")
    found = entries(archive)
    assert content(archive, "new") == b"x\n"
    assert "etc/group" not in found
    assert found["twin"].islnk() and found["twin"].linkname == "new"
    assert found["p"].isfifo()
    assert not {".", "", "/"} & set(found), "the root itself is not in it"
    assert {".dockerenv", "etc/hosts", "dev/console", "proc", "sys"} <= set(found), "as dockerd has them"


def test_a_running_container_without_what_is_mounted_in_it(daemon: Daemon, tmp_path: Path):
    (tmp_path / "host-file").touch()
    daemon.docker("run", "-d", "--name", "box", "-v", f"{tmp_path}:/vol", "busybox", "sleep", "1000")
    daemon.docker("exec", "box", "touch", "/tmp/x")
    found = entries(export(daemon, "box"))
    assert "tmp/x" in found
    assert not [name for name in found if name.startswith(("vol/", "proc/", "sys/"))]
    assert found["etc/hosts"].size == 0


def test_the_answer_on_the_wire(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    answer = daemon.http("GET", "/containers/box/export")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/octet-stream")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        assert "bin/busybox" in archive.getnames()
    assert daemon.http("GET", "/containers/nobody/export").status == 404
