"""Containers are made apart from all that the host has mounted, unless they need it."""

import subprocess
from pathlib import Path

import pytest

from tests.support.daemon import RUNTIME, Daemon
from tests.support.waiting import until

# Of another runtime nobody knows which files of the host it reads.
with_crun = pytest.mark.skipif(RUNTIME not in ("", "crun"), reason="only crun is started apart")


def monitor_sees(daemon: Daemon, container: str) -> list[str]:
    """The mount points in the namespace of the container's monitor."""
    pid = daemon.docker("inspect", "-f", "{{.State.Pid}}", container).stdout.strip()
    monitor = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    return [line.split()[4] for line in Path(f"/proc/{monitor}/mountinfo").read_text().splitlines()]


@with_crun
def test_a_monitor_holds_neither_roots_of_containers_nor_disks_of_the_host(daemon: Daemon, tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
    try:
        for name in ("one", "two"):
            daemon.docker("run", "-d", "--name", name, "busybox", "sleep", "1000")
        roots = (str(daemon.config.data_root), str(daemon.config.exec_root), str(disk))

        def held() -> list[str]:
            return [point for name in ("one", "two") for point in monitor_sees(daemon, name) if point.startswith(roots)]

        until(lambda: not held(), "nothing that is mounted below the daemon's directories is held by a monitor")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_the_host_has_mounted_meanwhile_can_be_bound(daemon: Daemon, tmp_path: Path):
    daemon.docker("run", "--rm", "busybox", "true")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
    try:
        (disk / "file").write_text("from a new disk\n")
        assert daemon.docker("run", "--rm", "-v", f"{disk}:/disk", "busybox", "cat", "/disk/file").stdout == (
            "from a new disk\n"
        )
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def made_apart(daemon: Daemon, container: str, disk: Path) -> bool:
    """Was its monitor started where the host's other mounts are not seen?"""
    return str(disk) not in monitor_sees(daemon, container)


@with_crun
def test_volumes_and_shareable_memory_need_no_mounts_of_the_host(daemon: Daemon, tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
    try:
        daemon.docker("volume", "create", "plain")
        daemon.docker("volume", "create", "-o", "type=tmpfs", "-o", "device=tmpfs", "mounted")
        daemon.docker("run", "--rm", "-v", "plain:/plain", "busybox", "sh", "-c", "echo kept > /plain/file")
        arguments = ["-v", "plain:/plain", "-v", "plain:/again:ro", "-v", "mounted:/mounted", "--ipc", "shareable"]
        daemon.docker("run", "-d", "--name", "apart", *arguments, "busybox", "sleep", "1000")
        assert made_apart(daemon, "apart", disk)
        assert daemon.docker("exec", "apart", "cat", "/plain/file", "/again/file").stdout == "kept\nkept\n"
        mounts = daemon.docker("exec", "apart", "cat", "/proc/mounts").stdout
        assert [line.split()[2] for line in mounts.splitlines() if line.split()[1] == "/mounted"] == ["tmpfs"]
        daemon.docker("exec", "apart", "sh", "-c", "echo shared > /dev/shm/word; echo new > /plain/file")
        sharing = daemon.docker("run", "--rm", "--ipc", "container:apart", "busybox", "cat", "/dev/shm/word")
        assert sharing.stdout == "shared\n"
        daemon.docker("run", "-d", "--name", "bound", "-v", f"{disk}:/disk", "busybox", "sleep", "1000")
        assert not made_apart(daemon, "bound", disk)
        roots = (str(daemon.config.data_root), str(daemon.config.exec_root))
        until(
            lambda: not [point for point in monitor_sees(daemon, "apart") if point.startswith(roots)],
            "the monitor holds neither the volumes nor the shared memory",
        )
        daemon.docker("rm", "-f", "apart", "bound")
        daemon.docker("volume", "rm", "plain", "mounted")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_is_mounted_inside_a_volume_is_in_the_container(daemon: Daemon):
    daemon.docker("volume", "create", "deep")
    inside = Path(daemon.docker("volume", "inspect", "-f", "{{.Mountpoint}}", "deep").stdout.strip(), "inside")
    inside.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(inside)], check=True)
    try:
        (inside / "file").write_text("from inside\n")
        seen = daemon.docker("run", "--rm", "-v", "deep:/deep", "busybox", "cat", "/deep/inside/file").stdout
        assert seen == "from inside\n"
    finally:
        subprocess.run(["umount", str(inside)], check=True)
    daemon.docker("volume", "rm", "deep")
