"""A copy's view of a container: its mounts and volumes, nothing of the host, and only while it lasts."""

import tarfile
import threading
import time
from pathlib import Path

import pytest

from tests.support.copying import get, make, mounted, put, where
from tests.support.daemon import Daemon
from tests.support.tars import content, entries, file, special, tar
from tests.support.waiting import until

# --- mounts


def test_into_a_bind_mount_whether_it_runs_or_not(daemon: Daemon, tmp_path: Path):
    daemon.docker("create", "--name", "box", "-v", f"{tmp_path}:/not/in/the/image", "busybox", "sleep", "1000")
    assert put(daemon, "box", "/not/in/the/image", tar(file("stopped", b"1"))).status == 200
    daemon.docker("start", "box")
    assert put(daemon, "box", "/not/in/the/image", tar(file("running", b"2"))).status == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["running", "stopped"]
    assert content(get(daemon, "box", "/not/in/the/image/running"), "running") == b"2"


def test_what_is_read_only_stays_so(daemon: Daemon, tmp_path: Path):
    (tmp_path / "f").write_text("f")
    (tmp_path / "rw").mkdir()
    options = ["-v", f"{tmp_path}:/ro:ro", "-v", f"{tmp_path}/rw:/rw", "--read-only"]
    daemon.docker("create", "--name", "box", *options, "busybox", "true")
    answer = put(daemon, "box", "/ro", tar(file("x")))
    assert (answer.status, answer.message) == (403, "mounted volume is marked read-only")
    answer = put(daemon, "box", "/tmp", tar(file("x")))
    assert (answer.status, answer.message) == (403, "container rootfs is marked read-only")
    assert put(daemon, "box", "/rw", tar(file("x"))).status == 200
    assert put(daemon, "box", "/", tar(file("ro/y"))).status == 403
    assert content(get(daemon, "box", "/ro/f"), "f") == b"f"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "rw"]


def test_a_mount_inside_the_place_cannot_be_written_around(daemon: Daemon, tmp_path: Path):
    """The place itself is writable, but an entry of the archive lies in a read-only mount."""
    (tmp_path / "f").write_text("host")
    daemon.docker("create", "--name", "box", "-v", f"{tmp_path}:/tmp/ro:ro", "busybox", "true")
    assert put(daemon, "box", "/tmp", tar(file("ro/f", b"changed"))).status >= 400
    assert put(daemon, "box", "/tmp", tar(file("ro", b"a file in its place"))).status >= 400
    assert (tmp_path / "f").read_text() == "host"


def test_the_files_that_the_engine_mounts_are_seen(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "-h", "called-so", "busybox", "sleep", "1000")
    assert content(get(daemon, "box", "/etc/hostname"), "hostname") == b"called-so\n"


# --- memory


def test_the_tmpfs_of_a_container_that_runs(daemon: Daemon):
    """Also one below a link, below a read-only root, and the shared memory; read back by the container and a copy."""
    options = ["--tmpfs", "/scratch", "--tmpfs", "/tmp", "--mount", "type=tmpfs,dst=/var/run/deep/er", "--read-only"]
    daemon.docker("create", "--name", "box", *options, "busybox", "sleep", "1000")
    answer = put(daemon, "box", "/tmp", tar(file("x")))
    assert (answer.status, "only while the container runs" in answer.message) == (403, True)
    daemon.docker("start", "box")
    for place in ("/scratch", "/var/run/deep/er", "/dev/shm"):
        assert put(daemon, "box", place, tar(file("x", b"1"))).status == 200
        assert daemon.docker("exec", "box", "cat", f"{place}/x").stdout == "1"
        assert content(get(daemon, "box", f"{place}/x"), "x") == b"1"
    assert put(daemon, "box", "/", tar(file("scratch/y"))).status == 403
    for place in ("/proc", "/sys", "/dev"):
        answer = put(daemon, "box", place, tar(file("x")))
        assert (answer.status, answer.message) == (
            403, f"nothing can be put into {place}, which is the kernel's in a container that runs",
        )  # fmt: skip


def test_a_container_cannot_lead_a_copy_into_other_memory(daemon: Daemon, tmp_path: Path):
    """With the host's processes in sight, `/proc/1/root` is the host's root: no copy follows it, neither where a tmpfs
    was nor on the way to one."""
    options = ["--privileged", "--pid=host", "--tmpfs", "/a/b", "--tmpfs", "/c"]
    daemon.docker("run", "-d", "--name", "box", *options, "busybox", "sleep", "1000")
    outside = f"/proc/1/root{tmp_path}"
    daemon.docker("exec", "box", "sh", "-c", f"umount /c; rmdir /c; ln -s {outside} /c; mv /a /x; ln -s {outside} /a")
    for place in ("/a/b", "/a", "/c"):
        assert put(daemon, "box", place, tar(file("evil"))).status >= 400
    assert daemon.http("GET", where("box", "/c/")).status == 404
    assert list(tmp_path.iterdir()) == []


# --- hostile


def test_an_archive_cannot_leave_the_container(daemon: Daemon, tmp_path: Path):
    daemon.docker("create", "--name", "box", "busybox")
    target = tmp_path / "evil"
    up = "../" * 20
    for archive in (
        tar(file(up + str(target), b"x")),
        tar(special("l", tarfile.SYMTYPE, up + str(tmp_path)), file("l/evil", b"x")),
        tar(special("l", tarfile.SYMTYPE, str(tmp_path)), file("l/evil", b"x")),
        tar(special("h", tarfile.LNKTYPE, up + "etc/passwd")),
        tar(special("n", tarfile.SYMTYPE, "/proc/1/root"), file(f"n{target}", b"x")),
    ):
        put(daemon, "box", "/tmp", archive)
    assert not target.exists()


def test_a_link_in_the_container_cannot_lead_out_of_it(daemon: Daemon, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    up = "../" * 20
    make(daemon, f"ln -s {up}{tmp_path} /out; ln -s {tmp_path}/secret /etc/shadow; ln -s /proc/1/root /root-of-host")
    assert daemon.http("GET", where("box", "/out/secret")).status == 404
    assert daemon.http("GET", where("box", "/out/")).status == 404
    assert put(daemon, "box", "/out", tar(file("evil"))).status == 404
    assert daemon.http("GET", where("box", f"/root-of-host{tmp_path}/secret")).status == 404
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


def test_a_link_as_mount_target_cannot_lead_out_of_it(daemon: Daemon, tmp_path: Path):
    (tmp_path / "source").mkdir()
    (tmp_path / "victim").mkdir()
    make(daemon, f"ln -s {'../' * 20}{tmp_path}/victim /mnt-here")
    daemon.docker("commit", "box", "hostile")
    daemon.docker("create", "--name", "other", "-v", f"{tmp_path}/source:/mnt-here", "hostile", "true")
    put(daemon, "other", "/mnt-here", tar(file("f")))
    assert list((tmp_path / "victim").iterdir()) == []
    daemon.docker("rm", "other")
    daemon.docker("rmi", "hostile")


def test_devices_in_a_container_are_not_opened(daemon: Daemon):
    """A tree with a device that was a file a moment ago: what cannot be opened is left out, nothing hangs."""
    make(daemon, "mkdir /d; mknod /d/zero c 1 5; mkfifo /d/pipe; echo x >/d/f")
    assert list(entries(get(daemon, "box", "/d"))) == ["d", "d/f", "d/pipe", "d/zero"]


@pytest.mark.parametrize("rubbish", [b"rubbish" * 100, tar(file("f", bytes(2000)))[:1500], b"\x1f\x8b\x08rubbish"])
def test_rubbish_is_refused(daemon: Daemon, rubbish: bytes):
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", rubbish).status == 400


# --- the mount


def test_a_stopped_container_is_mounted_only_while_it_is_copied(daemon: Daemon):
    make(daemon)
    get(daemon, "box", "/data")
    until(lambda: not mounted(daemon, "box"), "the copy's mount is gone")
    assert put(daemon, "box", "/nope", tar()).status == 404
    until(lambda: not mounted(daemon, "box"), "the failed copy's mount is gone")


def test_a_container_starts_and_ends_while_it_is_copied(daemon: Daemon):
    make(daemon, "dd if=/dev/zero of=/big bs=1M count=50 2>/dev/null; echo ran")
    connection = daemon.connection()
    connection.request("GET", where("box", "/big"))
    response = connection.getresponse()
    start = response.read(512)
    assert mounted(daemon, "box")
    assert daemon.docker("start", "-a", "box").stdout == "ran\n"
    assert mounted(daemon, "box"), "the copy still needs it"
    rest = response.read()
    assert len(entries(start + rest)) == 1
    connection.close()
    until(lambda: not mounted(daemon, "box"), "the last user has unmounted it")


def test_a_client_that_leaves_leaves_no_mount(daemon: Daemon):
    make(daemon, "dd if=/dev/zero of=/big bs=1M count=50 2>/dev/null")
    connection = daemon.connection()
    connection.request("GET", where("box", "/big"))
    response = connection.getresponse()
    response.read(512)
    response.close()
    connection.close()
    until(lambda: not mounted(daemon, "box"), "the copy's mount is gone")


def test_a_container_can_be_removed_while_it_is_copied(daemon: Daemon):
    make(daemon, "dd if=/dev/zero of=/big bs=1M count=50 2>/dev/null")
    connection = daemon.connection()
    connection.request("GET", where("box", "/big"))
    response = connection.getresponse()
    response.read(512)
    daemon.docker("rm", "-f", "box")
    response.close()
    connection.close()
    assert daemon.docker("ps", "-aq").stdout == ""


def test_copies_at_once(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    answers: list[int] = []

    def one(number: int) -> None:
        answers.append(put(daemon, "box", "/tmp", tar(file(f"f{number}", b"x"))).status)

    threads = [threading.Thread(daemon=True, target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    assert len(entries(get(daemon, "box", "/tmp"))) == 9


def test_events(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    since = str(time.time())
    get(daemon, "box", "/etc")
    put(daemon, "box", "/etc", tar())
    until(lambda: "extract-to-dir" in _actions(daemon, since), "the events are there")
    assert _actions(daemon, since) == ["archive-path", "extract-to-dir"]


def _actions(daemon: Daemon, since: str) -> list[str]:
    done = daemon.docker("events", "--since", since, "--until", str(time.time()), "--format", "{{.Action}}")
    return done.stdout.split()


# --- volumes


def test_into_a_volume_whether_it_runs_or_not(daemon: Daemon):
    daemon.docker("create", "--name", "box", "-v", "box-data:/data", "busybox", "sleep", "1000")
    assert put(daemon, "box", "/data", tar(file("stopped", b"1"))).status == 200
    daemon.docker("start", "box")
    assert put(daemon, "box", "/data", tar(file("running", b"2"))).status == 200
    assert daemon.docker("exec", "box", "cat", "/data/stopped", "/data/running").stdout == "12"
    daemon.docker("rm", "-f", "box")
    daemon.docker("run", "--name", "next", "-v", "box-data:/other:ro", "busybox", "cat", "/other/running")
    assert content(get(daemon, "next", "/other/stopped"), "stopped") == b"1"
    assert put(daemon, "next", "/other", tar(file("x"))).status == 403
    daemon.docker("rm", "next")
    daemon.docker("volume", "rm", "box-data")


def test_part_of_a_volume_and_an_image(daemon: Daemon):
    daemon.docker("run", "--rm", "-v", "box-parts:/data", "busybox", "mkdir", "/data/part")
    part = "type=volume,src=box-parts,dst=/part,volume-subpath=part"
    daemon.docker(
        "create", "--name", "box", "--mount", part, "--mount", "type=image,src=busybox,dst=/image", "busybox", "true"
    )
    assert put(daemon, "box", "/part", tar(file("f", b"x"))).status == 200
    assert "busybox" in entries(get(daemon, "box", "/image/bin/busybox"))
    assert put(daemon, "box", "/image", tar(file("x"))).status == 403
    listing = daemon.docker("run", "--rm", "-v", "box-parts:/data", "busybox", "ls", "/data", "/data/part").stdout
    assert listing == "/data:\npart\n\n/data/part:\nf\n"
    daemon.docker("rm", "box")
    daemon.docker("volume", "rm", "box-parts")


def test_a_start_while_a_volume_is_copied(daemon: Daemon):
    script = "dd if=/dev/zero of=/data/part/big bs=1M count=50 2>/dev/null"
    daemon.docker("run", "--rm", "-v", "box-parts:/data", "busybox", "sh", "-c", "mkdir /data/part;" + script)
    part = "type=volume,src=box-parts,dst=/part,volume-subpath=part"
    daemon.docker("create", "--name", "box", "--mount", part, "busybox", "ls", "/part")
    connection = daemon.connection()
    connection.request("GET", where("box", "/part/big"))
    response = connection.getresponse()
    start = response.read(512)
    assert daemon.docker("start", "-a", "box").stdout == "big\n"
    assert len(entries(start + response.read())) == 1
    connection.close()
    daemon.docker("rm", "box")
    daemon.docker("volume", "rm", "box-parts")


# --- clients that do not wait


def test_a_client_that_leaves_while_it_sends(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    head = f"PUT {where('box', '/tmp')} HTTP/1.1\r\nHost: d\r\nContent-Length: {50 << 20}\r\n\r\n".encode()
    archive = tar(file("big", bytes(2 << 20)))
    with daemon.raw() as channel:
        channel.sendall(head + archive[: 1 << 20])
        until(lambda: mounted(daemon, "box"), "the copy has begun")
    until(lambda: not mounted(daemon, "box"), "the copy's mount is gone")


def test_an_error_reaches_a_client_that_is_still_sending(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    answer = put(daemon, "box", "/nope", tar(file("big", bytes(20 << 20))))
    assert answer.status == 404
