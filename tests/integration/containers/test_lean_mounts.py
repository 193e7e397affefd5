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
    """Tell if its monitor was started where the host's other mounts are not seen."""
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
        roots = (str(daemon.config.data_root), str(daemon.config.exec_root))
        until(
            lambda: not [point for point in monitor_sees(daemon, "apart") if point.startswith(roots)],
            "the monitor holds neither the volumes nor the shared memory",
        )
        daemon.docker("rm", "-f", "apart")
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


def flags_of(daemon: Daemon, container: str, place: str) -> set[str]:
    """Return the flags of a mount in the container."""
    table = daemon.docker("exec", container, "cat", "/proc/mounts").stdout.splitlines()
    return set(next(line.split()[3] for line in table if line.split()[1] == place).split(","))


@with_crun
def test_what_is_bound_needs_no_other_mounts_of_the_host(daemon: Daemon, tmp_path: Path):
    disk, other = tmp_path / "disk", tmp_path / "other"
    for directory in (disk, other):
        directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nodev,nosuid", "tmpfs", str(disk)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(other)], check=True)
    try:
        (disk / "inner").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk / "inner")], check=True)
        (disk / "inner" / "file").write_text("deep\n")
        (disk / "file").write_text("flat\n")
        (tmp_path / "link").symlink_to(disk / "inner")
        binds = [f"{disk}:/rw", f"{disk}:/ro:ro", f"{disk}/file:/etc/file", f"{tmp_path}/link:/link"]
        binds.append(f"{daemon.config.hosts[0].removeprefix('unix://')}:/sock")
        arguments = [word for bind in binds for word in ("-v", bind)]
        daemon.docker("run", "-d", "--name", "bound", *arguments, "busybox", "sleep", "1000")
        assert made_apart(daemon, "bound", other)
        read = daemon.docker("exec", "bound", "cat", "/rw/inner/file", "/etc/file", "/link/file", "/ro/file").stdout
        assert read == "deep\nflat\ndeep\nflat\n"
        daemon.docker("exec", "bound", "test", "-S", "/sock")
        assert {"rw", "nosuid", "nodev"} <= flags_of(daemon, "bound", "/rw")
        assert {"ro", "nosuid", "nodev"} <= flags_of(daemon, "bound", "/ro")
        daemon.docker("exec", "bound", "sh", "-c", "echo new > /rw/inner/file; ! touch /ro/inner/x; ! touch /ro/x")
        assert (disk / "inner" / "file").read_text() == "new\n"
        until(lambda: made_apart(daemon, "bound", disk), "the monitor does not hold what was bound")
        # What is mounted later on is nothing to a private mount; to another kind it is.
        subprocess.run(["mount", "--make-shared", str(disk)], check=True)
        daemon.docker("run", "-d", "--name", "slave", "-v", f"{disk}:/slave:rslave", "busybox", "sleep", "1000")
        (disk / "later").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk / "later")], check=True)
        (disk / "later" / "file").write_text("late\n")
        assert daemon.docker("exec", "slave", "cat", "/slave/later/file").stdout == "late\n"
        assert daemon.docker("exec", "bound", "ls", "/rw/later").stdout == ""
        refused = daemon.docker("run", "--rm", "--mount", f"type=bind,src={disk}/none,dst=/x", "busybox", check=False)
        assert "bind source path does not exist" in refused.stderr
        daemon.docker("rm", "-f", "bound", "slave")
    finally:
        subprocess.run(["umount", "-R", str(disk)], check=True)
        subprocess.run(["umount", str(other)], check=True)
