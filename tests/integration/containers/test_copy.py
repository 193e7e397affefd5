"""`docker cp`: files in and out of containers, large and small, and what a path names."""

import bz2
import contextlib
import fcntl
import gzip
import lzma
import os
import socket
import stat
import struct
import subprocess
import tarfile
import termios
from pathlib import Path

import pytest

from tests.support.copying import FILES, get, make, put, status, where
from tests.support.daemon import Daemon
from tests.support.tars import content, entries, file, special, tar
from tests.support.waiting import until

# --- with the docker command


def test_a_tree_goes_in_and_comes_out_the_same(daemon: Daemon, tmp_path: Path):
    source = tmp_path / "tree"
    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/file").write_bytes(os.urandom(100_000))
    (source / "deep/er/file").chmod(0o640)
    (source / "link").symlink_to("deep/er/file")
    os.link(source / "deep/er/file", source / "twin")
    os.mkfifo(source / "pipe")
    os.setxattr(source / "twin", "user.note", b"x")
    daemon.docker("create", "--name", "box", "busybox")
    daemon.docker("cp", str(source), "box:/srv")
    daemon.docker("cp", "box:/srv", str(tmp_path / "back"))
    back = tmp_path / "back"
    assert (back / "deep/er/file").read_bytes() == (source / "deep/er/file").read_bytes()
    assert stat.S_IMODE((back / "deep/er/file").stat().st_mode) == 0o640
    assert os.readlink(back / "link") == "deep/er/file"
    assert (back / "twin").stat().st_ino == (back / "deep/er/file").stat().st_ino
    assert stat.S_ISFIFO((back / "pipe").stat().st_mode)
    assert int((back / "twin").stat().st_mtime) == int((source / "twin").stat().st_mtime)


def test_into_and_out_of_a_running_container(daemon: Daemon, tmp_path: Path):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    (tmp_path / "f").write_text("hello")
    daemon.docker("cp", str(tmp_path / "f"), "box:/tmp/g")
    assert daemon.docker("exec", "box", "cat", "/tmp/g").stdout == "hello"
    daemon.docker("exec", "box", "sh", "-c", "echo more >>/tmp/g")
    daemon.docker("cp", "box:/tmp/g", str(tmp_path / "h"))
    assert (tmp_path / "h").read_text() == "hellomore\n"


def test_through_links(daemon: Daemon, tmp_path: Path):
    make(daemon)
    daemon.docker("cp", "-L", "box:/data/flink", str(tmp_path / "passwd"))
    assert "root:" in (tmp_path / "passwd").read_text()
    daemon.docker("cp", "box:/dlink", str(tmp_path / "link"))
    assert os.readlink(tmp_path / "link") == "data"
    (tmp_path / "new").write_text("new")
    daemon.docker("cp", str(tmp_path / "new"), "box:/dlink/")
    assert content(get(daemon, "box", "/data/new"), "new") == b"new"


def test_standard_input_and_output(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    process = daemon.docker_process("cp", "-", "box:/tmp")
    assert process.communicate(tar(file("from-stdin", b"x"))) == (b"", b"")
    out = subprocess.run(["docker", "cp", "box:/tmp/from-stdin", "-"], env=daemon.environment, capture_output=True)
    assert content(out.stdout, "from-stdin") == b"x"


def test_the_sdk_copies_both_ways(daemon: Daemon):
    with contextlib.closing(daemon.sdk()) as client:
        container = client.containers.create("busybox", name="box")
        assert container.put_archive("/tmp", tar(file("f", b"sdk")))
        chunks, found = container.get_archive("/tmp/f")
        assert found is not None
        assert content(b"".join(chunks), "f") == b"sdk"
        assert (found["name"], found["size"]) == ("f", 3)


# --- what a path names


def test_status_in_the_numbers_of_go(daemon: Daemon):
    make(daemon, FILES + "; chmod 6755 /data/a; mkfifo /p; mknod /dev/x c 1 3; chmod 1777 /tmp")
    directory = 1 << 31
    assert status(daemon, "box", "/data")["mode"] == directory | 0o755
    assert status(daemon, "box", "/data/a")["mode"] == 1 << 23 | 1 << 22 | 0o755
    assert status(daemon, "box", "/tmp")["mode"] == directory | 1 << 20 | 0o777
    assert status(daemon, "box", "/p")["mode"] & ~0o777 == 1 << 25
    assert status(daemon, "box", "/data/a")["size"] == 2
    link = status(daemon, "box", "/data/flink")
    assert (link["name"], link["mode"], link["linkTarget"]) == ("flink", 1 << 27 | 0o777, "/etc/passwd")


@pytest.mark.parametrize(
    ("path", "name", "target"),
    [
        ("/data", "data", ""),
        ("data/", "data", ""),
        ("/data/.", ".", ""),
        ("/dlink", "dlink", "/data"),
        ("/dlink/", "dlink", ""),
        ("/", "/", ""),
        (".", ".", ""),
        ("/data/../data/sub", "sub", ""),
        ("../../data", "data", ""),
    ],
)
def test_how_a_path_is_read(daemon: Daemon, path: str, name: str, target: str):
    make(daemon)
    found = status(daemon, "box", path)
    assert (found["name"], found["linkTarget"]) == (name, target)


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("/data", ["data", "data/a", "data/flink", "data/sub", "data/sub/c"]),
        ("/dlink/", ["dlink", "dlink/a", "dlink/flink", "dlink/sub", "dlink/sub/c"]),
        ("/data/.", [".", "./a", "./flink", "./sub", "./sub/c"]),
        ("/dlink", ["dlink"]),
        ("/data/sub/c", ["c"]),
    ],
)
def test_names_in_the_archive(daemon: Daemon, path: str, first: list[str]):
    make(daemon)
    assert list(entries(get(daemon, "box", path))) == first


def test_links_that_lead_nowhere_or_in_circles(daemon: Daemon):
    make(daemon, "ln -s /nowhere/x /broken; ln -s loop /loop")
    assert status(daemon, "box", "/broken")["linkTarget"] == "/nowhere/x"
    assert daemon.http("HEAD", where("box", "/loop")).status == 500
    assert put(daemon, "box", "/broken", tar()).status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_what_is_not_there(daemon: Daemon, method: str):
    make(daemon, "true")
    answer = daemon.http(method, where("box", "/nope"), b"" if method == "PUT" else None)
    assert answer.status == 404
    if method != "HEAD":
        assert answer.message == "Could not find the file /nope in container box"
    assert daemon.http(method, where("nobody", "/")).status == 404
    assert daemon.http(method, "/containers/box/archive").status == 400


def test_a_file_is_no_directory(daemon: Daemon):
    make(daemon)
    answer = put(daemon, "box", "/data/a", tar())
    assert (answer.status, answer.message) == (400, "extraction point is not a directory")
    assert daemon.http("GET", where("box", "/data/a/")).status == 500


# --- what comes in


def test_owner_mode_and_time_are_those_of_the_archive(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    archive = tar(special("d", tarfile.DIRTYPE, mode=0o2750, uid=7), file("d/f", b"x", 0o4711, uid=77), file("e/f"))
    assert put(daemon, "box", "/tmp", archive).status == 200
    found = entries(get(daemon, "box", "/tmp"))
    assert (found["tmp/d"].mode, found["tmp/d"].uid, found["tmp/d"].mtime) == (0o2750, 7, 5)
    assert (found["tmp/d/f"].mode, found["tmp/d/f"].uid, found["tmp/d/f"].gid) == (0o4711, 77, 77)
    assert (found["tmp/e"].mode, found["tmp/e"].uid) == (0o755, 0), "made because the archive has a file in it"


def test_a_copy_does_not_inherit_from_the_directory_it_goes_into(daemon: Daemon):
    make(daemon, "mkdir /shared; chgrp 1000 /shared; chmod 2777 /shared")
    assert put(daemon, "box", "/shared", tar(file("f", b"x", 0o666))).status == 200
    assert entries(get(daemon, "box", "/shared"))["shared/f"].gid == 0
    assert entries(get(daemon, "box", "/shared"))["shared"].mode == 0o2777


def test_copy_to_the_containers_own_user(daemon: Daemon):
    make(daemon, "echo web:x:1234:5678::/:/bin/sh >>/etc/passwd")
    daemon.docker("commit", "box", "with-user")
    daemon.docker("create", "--name", "other", "-u", "web", "with-user", "true")
    archive = tar(file("f", b"x", uid=77), special("d", tarfile.DIRTYPE, uid=77))
    assert put(daemon, "other", "/tmp", archive, copyUIDGID="1").status == 200
    found = entries(get(daemon, "other", "/tmp"))
    assert {(found[name].uid, found[name].gid) for name in ("tmp/f", "tmp/d")} == {(1234, 5678)}
    daemon.docker("rm", "other")
    daemon.docker("rmi", "with-user")


def test_files_and_directories_replace_each_other_unless_told_not_to(daemon: Daemon):
    make(daemon)
    over_directory, over_file = tar(file("sub", b"x")), tar(special("a", tarfile.DIRTYPE))
    answer = put(daemon, "box", "/data", over_directory, noOverwriteDirNonDir="1")
    assert (answer.status, answer.message) == (400, 'cannot overwrite directory "/data/sub" with non-directory "/data"')
    answer = put(daemon, "box", "/data", over_file, noOverwriteDirNonDir="true")
    assert (answer.status, answer.message) == (400, 'cannot overwrite non-directory "/data/a" with directory "/data"')
    assert put(daemon, "box", "/data", over_directory).status == 200
    assert put(daemon, "box", "/data", over_file).status == 200
    found = entries(get(daemon, "box", "/data"))
    assert (found["data/sub"].isreg(), found["data/a"].isdir()) == (True, True)


def test_whiteouts_are_files_like_others(daemon: Daemon):
    make(daemon)
    assert put(daemon, "box", "/data", tar(file(".wh.a"), file(".wh..wh..opq"))).status == 200
    assert {"data/a", "data/.wh.a", "data/.wh..wh..opq", "data/sub/c"} <= set(entries(get(daemon, "box", "/data")))


def test_special_files(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", tar(special("n", tarfile.CHRTYPE), special("p", tarfile.FIFOTYPE))).status == 200
    found = entries(get(daemon, "box", "/tmp"))
    assert (found["tmp/n"].ischr(), found["tmp/n"].devmajor, found["tmp/p"].isfifo()) == (True, 1, True)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_archives(daemon: Daemon, compress):
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", compress(tar(file("f", b"x")))).status == 200
    assert content(get(daemon, "box", "/tmp/f"), "f") == b"x"


def test_an_empty_body_is_an_empty_archive(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", b"").status == 200


# --- large


def resident(pid: int) -> int:
    """Bytes of memory that the daemon holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_large_file_both_ways_with_constant_memory(daemon: Daemon, tmp_path: Path):
    size = 300 << 20
    with (tmp_path / "big").open("wb") as big:
        big.truncate(size)
        big.seek(size // 2)
        big.write(b"middle")
    daemon.docker("create", "--name", "box", "busybox")
    before = resident(daemon.pid)
    daemon.docker("cp", str(tmp_path / "big"), "box:/tmp/big")
    daemon.docker("cp", "box:/tmp/big", str(tmp_path / "back"))
    assert resident(daemon.pid) - before < 40 << 20
    assert subprocess.run(["cmp", tmp_path / "big", tmp_path / "back"]).returncode == 0


def waiting_in(channel: socket.socket) -> int:
    """Return how many bytes have come that nobody has read."""
    (size,) = struct.unpack("i", fcntl.ioctl(channel, termios.FIONREAD, struct.pack("i", 0)))
    return int(size)


def test_a_client_that_does_not_read_holds_up_nobody_and_costs_nothing(daemon: Daemon):
    make(daemon, "dd if=/dev/zero of=/big bs=1M count=200 2>/dev/null")
    before = resident(daemon.pid)
    connection = daemon.connection()
    connection.request("GET", where("box", "/big"))
    response = connection.getresponse()
    response.read(1000)
    until(lambda: waiting_in(connection.sock) > 100_000, "the connection is full")
    assert daemon.docker("start", "box").returncode == 0
    assert resident(daemon.pid) - before < 20 << 20
    connection.close()
    response.close()


def test_many_files(daemon: Daemon, tmp_path: Path):
    archive = tar(*(file(f"d{n % 50}/f{n}", b"x" * (n % 700)) for n in range(8000)))
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", archive).status == 200
    assert len(entries(get(daemon, "box", "/tmp"))) == 8000 + 50 + 1


def test_names_that_are_no_text(daemon: Daemon):
    make(daemon, r"n=$(printf 'x\377y'); mkdir -p /d/$n.d; echo 1 >/d/$n; ln -s /d/$n /link; echo 2 >/d/$n.d/2")
    assert "A /d/x\ufffdy.d/2" in daemon.docker("diff", "box").stdout.splitlines()
    for path in ("/d/x%FFy", "/d/x%FFy.d", "/d", "/link"):
        target = f"/containers/box/archive?path={path}"
        assert daemon.http("HEAD", target).status == daemon.http("GET", target).status == 200, path
    assert status(daemon, "box", b"/d/x\xffy")["name"] == "x\ufffdy"
    assert status(daemon, "box", "/link")["linkTarget"] == "/d/x\ufffdy"
    missing = daemon.http("GET", "/containers/box/archive?path=/d/%FE")
    assert missing.status == 404 and "/d/\ufffd in" in missing.json()["message"]
    assert daemon.http("PUT", "/containers/box/archive?path=/d/x%FFy.d", tar(file("new", b"3"))).status == 200
    assert any(name.endswith("/new") for name in entries(get(daemon, "box", b"/d/x\xffy.d")))
