"""/proc belongs to the kernel: nothing of a client or an image is mounted there, and what is read-only is safe."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.daemon import RUNTIME, Daemon
from tests.support.waiting import until

SAFE = {"ro", "nosuid", "nodev", "noexec"}


def refusal(daemon: Daemon, *arguments: str) -> str:
    done = daemon.docker("run", "--rm", *arguments, "true", check=False)
    assert done.returncode != 0, f"it ran: {arguments}"
    return done.stderr


@pytest.mark.parametrize("place", ["/proc", "/proc/sys", "/proc/sys/kernel", "/proc/self/attr", "/proc/../proc/sys"])
def test_a_mount_there_is_refused(daemon: Daemon, tmp_path: Path, place: str):
    for mount in (("-v", f"{tmp_path}:{place}"), ("-v", place), ("--tmpfs", place), ("-v", f"{tmp_path}:{place}:ro")):
        assert "cannot be mounted" in refusal(daemon, *mount, "busybox")
    assert "cannot be mounted" in refusal(daemon, "--privileged", "-v", f"{tmp_path}:{place}", "busybox")
    assert daemon.docker("ps", "-aq").stdout == ""


def test_a_link_of_an_image_leads_nothing_there(daemon: Daemon, tmp_path: Path):
    daemon.docker("run", "--name", "maker", "busybox", "ln", "-s", "/proc", "/data")
    daemon.docker("commit", "maker", "linked")
    daemon.docker("rm", "maker")
    try:
        for mount in (f"{tmp_path}:/data/sys", f"{tmp_path}:/data", f"{tmp_path}:/data/self/attr"):
            assert "cannot be mounted" in refusal(daemon, "-v", mount, "linked")
    finally:
        daemon.docker("rmi", "linked")


def test_a_link_of_a_volume_leads_nothing_there(daemon: Daemon, tmp_path: Path):
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "sub").symlink_to("/proc/sys")
    mounts = ("-v", f"{tmp_path}/volume:/data", "-v", f"{tmp_path}:/data/sub")
    assert "cannot be mounted" in refusal(daemon, *mounts, "busybox")


def test_a_monitor_whose_container_never_ran_is_reaped(daemon: Daemon, tmp_path: Path):
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "sub").symlink_to("/proc/sys")
    before = children(daemon)
    refusal(daemon, "-v", f"{tmp_path}/volume:/data", "-v", f"{tmp_path}:/data/sub", "busybox")
    until(lambda: "conmon" not in (children(daemon) - before).elements(), "that the monitor is gone")


def children(daemon: Daemon) -> Counter[str]:
    """Return the names of the daemon's children, with those that nobody has reaped."""
    threads = Path(f"/proc/{daemon.pid}/task").glob("*/children")
    pids = [pid for thread in threads for pid in thread.read_text().split()]
    return Counter(Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids)


def test_files_that_inform_may_be_covered(daemon: Daemon, tmp_path: Path):
    (tmp_path / "uptime").write_text("1.00 2.00\n")
    done = daemon.docker("run", "--rm", "-v", f"{tmp_path}/uptime:/proc/uptime:ro", "busybox", "cat", "/proc/uptime")
    assert done.stdout == "1.00 2.00\n"


def test_the_hosts_own_proc_may_be_there(daemon: Daemon):
    # runc sets sysctls through the container's own /proc, so it cannot start one that is read-only; nor can dockerd.
    for mode in ("",) if RUNTIME == "runc" else ("", ":ro"):
        done = daemon.docker(
            "run", "--rm", "-v", f"/proc:/proc{mode}", "busybox", "grep", "-c", " /proc ", "/proc/mounts"
        )
        assert int(done.stdout) >= 1


@pytest.mark.parametrize("runtime", ["crun", "runc"])
def test_read_only_places_of_proc_keep_its_flags(daemon: Daemon, runtime: str):
    lines = daemon.docker("run", "--rm", "--runtime", runtime, "busybox", "cat", "/proc/mounts").stdout.splitlines()
    found = {fields[1]: set(fields[3].split(",")) for line in lines if (fields := line.split())[2] == "proc"}
    assert {"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq"} <= set(found)
    assert [point for point, options in found.items() if point != "/proc" and not options >= SAFE] == []
    assert found["/proc"] >= SAFE - {"ro"}
