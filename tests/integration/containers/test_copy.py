"""`docker cp`: files in and out of containers, running or not, and nothing of the host."""

import base64
import bz2
import contextlib
import gzip
import json
import lzma
import os
import stat
import subprocess
import tarfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.tars import content, entries, file, special, tar
from tests.support.waiting import until

FILES = "mkdir -p /data/sub; echo a >/data/a; echo c >/data/sub/c; ln -s data /dlink; ln -s ../etc/passwd /data/flink"


def make(daemon: Daemon, script: str = FILES, *options: str) -> str:
    """A container that has run `script` and ended."""
    daemon.docker("run", "--name", "box", *options, "busybox", "sh", "-c", script)
    return "box"


def where(name: str, path: str, **query: str) -> str:
    more = "".join(f"&{key}={value}" for key, value in query.items())
    return f"/containers/{name}/archive?path={quote(path, safe='')}{more}"


def status(daemon: Daemon, name: str, path: str) -> dict:
    answer = daemon.http("HEAD", where(name, path))
    assert answer.status == 200
    return json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))


def get(daemon: Daemon, name: str, path: str) -> bytes:
    answer = daemon.http("GET", where(name, path))
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-tar"
    return answer.body


def put(daemon: Daemon, name: str, path: str, archive: bytes, **query: str) -> Answer:
    return daemon.http("PUT", where(name, path, **query), archive, {"Content-Type": "application/x-tar"})


def mounted(daemon: Daemon, container: str) -> bool:
    container_id = daemon.docker("inspect", "-f", "{{.Id}}", container).stdout.strip()
    return os.path.ismount(daemon.config.data_root / "containers" / container_id / "rootfs")


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


def test_a_client_that_does_not_read_holds_up_nobody_and_costs_nothing(daemon: Daemon):
    make(daemon, "dd if=/dev/zero of=/big bs=1M count=200 2>/dev/null")
    before = resident(daemon.pid)
    connection = daemon.connection()
    connection.request("GET", where("box", "/big"))
    response = connection.getresponse()
    response.read(1000)
    time.sleep(0.5)
    assert resident(daemon.pid) - before < 20 << 20
    assert daemon.docker("start", "box").returncode == 0
    connection.close()
    response.close()


def test_many_files(daemon: Daemon, tmp_path: Path):
    archive = tar(*(file(f"d{n % 50}/f{n}", b"x" * (n % 700)) for n in range(8000)))
    daemon.docker("create", "--name", "box", "busybox")
    assert put(daemon, "box", "/tmp", archive).status == 200
    assert len(entries(get(daemon, "box", "/tmp"))) == 8000 + 50 + 1


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

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    assert len(entries(get(daemon, "box", "/tmp"))) == 9


def test_events(daemon: Daemon):
    make(daemon)
    since = str(time.time())
    get(daemon, "box", "/data")
    put(daemon, "box", "/data", tar())
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
