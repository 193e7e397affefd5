"""Volumes with options of mount(8): mounted by the first container that starts, unmounted after the last."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import mount
from tests.integration.volumes.helpers import background, create, data, make_image, run, volumes
from tests.support.daemon import Daemon
from tests.support.waiting import until


@pytest.fixture(scope="module")
def image(module_daemon: Daemon) -> str:
    return make_image(module_daemon, "full")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "f").write_text("host\n")
    yield tmp_path
    assert (tmp_path / "f").read_text() == "host\n", "removing a volume leaves what it was mounted from"


def make(daemon: Daemon, name: str, kind: str, device: str, options: str = "") -> None:
    words = ["-o", f"type={kind}", "-o", f"device={device}", *(["-o", f"o={options}"] if options else [])]
    daemon.docker("volume", "create", *words, name)


def mounted(daemon: Daemon, name: str) -> bool:
    return str(data(daemon, name)) in mount.mounts_below(str(daemon.config.data_root))


def test_a_tmpfs_lives_from_the_first_container_to_the_last(daemon: Daemon, image: str) -> None:
    make(daemon, "shm", "tmpfs", "tmpfs", "size=1m,uid=7,noexec")
    assert not mounted(daemon, "shm")
    one = background(daemon, "-v", "shm:/x", "busybox", "sh", "-c", "echo one > /x/f; exec sleep 100")
    assert mounted(daemon, "shm")
    two = background(daemon, "-v", "shm:/y", "busybox", "sleep", "100")
    line = daemon.docker("exec", two, "sh", "-c", "grep ' /y ' /proc/mounts; cat /y/f").stdout
    assert "tmpfs" in line and "size=1024k" in line and "uid=7" in line and "noexec" in line and "one\n" in line
    daemon.docker("rm", "-f", one)
    assert mounted(daemon, "shm")
    daemon.docker("kill", two)
    until(lambda: not mounted(daemon, "shm"), "the last one unmounts it")
    assert run(daemon, "-v", "shm:/x", "busybox", "ls", "/x") == ""


def test_a_directory_of_the_host(daemon: Daemon, image: str, directory: Path) -> None:
    make(daemon, "host", "none", str(directory), "bind")
    assert run(daemon, "-v", "host:/x", image, "sh", "-c", "cat /x/f; echo new > /x/new") == "host\n"
    assert (directory / "new").read_text() == "new\n"
    make(daemon, "host-ro", "none", str(directory), "bind,ro")
    assert "Read-only" in run(daemon, "-v", "host-ro:/x", image, "touch", "/x/f", check=False)
    daemon.docker("volume", "rm", "host", "host-ro")


def test_the_first_content_goes_to_what_is_mounted(daemon: Daemon, image: str, tmp_path: Path) -> None:
    make(daemon, "filled", "none", str(tmp_path), "bind")
    create(daemon, "-v", "filled:/data", image)
    assert (tmp_path / "f").read_text() == "hi\n" and (tmp_path / "f").stat().st_uid == 12
    assert not mounted(daemon, "filled") and os.listdir(data(daemon, "filled")) == []


def test_what_cannot_be_mounted_is_told_at_the_start(daemon: Daemon, image: str) -> None:
    make(daemon, "bad", "none", "/no/such/place", "bind")
    container = create(daemon, "-v", "bad:/x", image)
    answer = daemon.http("POST", f"/containers/{container}/start")
    place = data(daemon, "bad")
    assert answer.message == (
        f"error while mounting volume '{place}': failed to mount local volume: mount /no/such/place:{place}, "
        "flags: 0x1000: no such file or directory"
    )
    make(daemon, "share", "cifs", "//host/share", "addr=127.0.0.1,password=secret")
    told = run(daemon, "-v", "share:/x", image, check=False)
    assert "failed to mount local volume" in told and "secret" not in told
    make(daemon, "net", "nfs", ":/x", "addr=no-such-host.invalid")
    told = run(daemon, "-v", "net:/x", image, check=False)
    assert "error resolving passed in network volume address: no-such-host.invalid: " in told


@pytest.mark.skipif("nfs" in Path("/proc/filesystems").read_text(), reason="the kernel has NFS")
def test_a_kernel_without_nfs_is_named(daemon: Daemon, image: str) -> None:
    make(daemon, "net", "nfs", ":/x", "addr=127.0.0.1,nfsvers=4")
    told = run(daemon, "-v", "net:/x", image, check=False)
    assert "data: addr=127.0.0.1,nfsvers=4: no such device (this host's kernel has no file system nfs)" in told


def test_mount_asks_for_a_driver_with_options(daemon: Daemon, image: str) -> None:
    option = "type=volume,src=made,dst=/x,volume-driver=local,volume-opt=type=tmpfs,volume-opt=device=tmpfs"
    assert "tmpfs" in run(daemon, "--mount", option, image, "grep", " /x ", "/proc/mounts")
    assert volumes(daemon) == {"made"}
    body = {"Image": image, "HostConfig": {"Binds": ["no:/x"], "VolumeDriver": "foo"}}
    refused = daemon.http("POST", "/containers/create", body)
    assert refused.status == 404
    assert refused.message == 'create no: error looking up volume plugin foo: plugin "foo" not found'


def test_a_part_of_what_is_mounted(daemon: Daemon, image: str, directory: Path) -> None:
    make(daemon, "whole", "none", str(directory), "bind")
    assert run(daemon, "--mount", "type=volume,src=whole,dst=/p,volume-subpath=f", image, "cat", "/p") == "host\n"
