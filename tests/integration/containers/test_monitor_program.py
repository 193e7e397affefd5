"""Libraries that monitors load: none that they have no use for."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.runtime.elf import without
from tests.support.daemon import Daemon

LIBRARY = "libsystemd"


def monitor_of(daemon: Daemon, container: str) -> Path:
    """Return what the kernel tells of the process that keeps a container."""
    pid = daemon.docker("inspect", "-f", "{{.State.Pid}}", container).stdout.strip()
    return Path("/proc", Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def conmon() -> Path:
    return Path(shutil.which("conmon") or "")


@pytest.fixture
def linked() -> None:
    """The host's conmon is linked with the library; not every distribution's is."""
    if f"{LIBRARY}.so.0".encode() not in conmon().read_bytes():
        pytest.skip("this conmon is not linked with libsystemd")


@pytest.fixture
def no_programs_in_run() -> Iterator[Daemon]:
    """A daemon whose run directory is as /run is on Debian."""
    root = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nosuid,nodev,noexec", "run", root], check=True)
    try:
        with Daemon(exec_root=root / "husk") as daemon:
            yield daemon
    finally:
        subprocess.run(["umount", root], check=True)
        root.rmdir()


def test_a_monitor_has_no_library_that_it_does_not_use(daemon: Daemon, linked: None) -> None:
    daemon.docker("run", "-d", "--name", "kept", "busybox", "sleep", "1000")
    monitor = monitor_of(daemon, "kept")
    assert (monitor / "comm").read_text() == "conmon\n"
    assert "libc.so" in (monitor / "maps").read_text()
    assert LIBRARY not in (monitor / "maps").read_text()
    assert (monitor / "exe").readlink() == daemon.config.data_root / "monitor" / "conmon"


def test_the_next_daemon_runs_the_same_copy(daemon: Daemon, linked: None) -> None:
    copy = daemon.config.data_root / "monitor" / "conmon"
    before = copy.stat().st_ino
    daemon.docker("run", "-d", "--name", "kept", "busybox", "sleep", "1000")
    daemon.kill9()
    daemon.start()
    assert copy.stat().st_ino == before
    assert (monitor_of(daemon, "kept") / "exe").readlink() == copy


def test_where_programs_in_run_may_not_be_run(no_programs_in_run: Daemon, linked: None) -> None:
    daemon = no_programs_in_run
    daemon.docker("run", "-d", "--name", "kept", "--init", "busybox", "sleep", "1000")
    assert (monitor_of(daemon, "kept") / "exe").readlink() == daemon.config.data_root / "monitor" / "conmon"
    assert daemon.docker("exec", "kept", "echo", "hi").stdout == "hi\n"
    daemon.docker("rm", "-f", "kept")
    daemon.check_no_litter()


def test_only_what_a_linker_reads_is_changed(linked: None) -> None:
    """That its containers work is what all other tests show."""
    whole = conmon().read_bytes()
    copy = without(whole, f"{LIBRARY}.so.0", "sd_journal_")
    assert len(copy) == len(whole)
    assert 0 < sum(before != after for before, after in zip(whole, copy, strict=True)) < 100
