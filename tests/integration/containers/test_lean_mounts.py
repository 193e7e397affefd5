"""Containers are made apart from all that the host has mounted, unless they need it."""

import subprocess
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.waiting import until


def monitor_sees(daemon: Daemon, container: str) -> list[str]:
    """The mount points in the namespace of the container's monitor."""
    pid = daemon.docker("inspect", "-f", "{{.State.Pid}}", container).stdout.strip()
    monitor = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    return [line.split()[4] for line in Path(f"/proc/{monitor}/mountinfo").read_text().splitlines()]


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
