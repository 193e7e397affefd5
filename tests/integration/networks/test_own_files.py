"""A daemon neither waits nor reads on, whatever a container does with its /etc/hosts and /etc/resolv.conf."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until

FILES = ["hosts", "resolv.conf"]
HOLD = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


def file_of(daemon: Daemon, container: str, name: str) -> Path:
    found = json.loads(daemon.docker("inspect", container).stdout)[0]
    return daemon.config.data_root / "containers" / found["Id"] / name


@contextlib.contextmanager
def leased(path: Path) -> Iterator[None]:
    """Somebody holds a lease, as any process in the container may on a file that is its user's."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            holder.kill()


@pytest.mark.parametrize("name", FILES)
def test_a_lease_delays_nobody_and_the_file_follows_when_it_is_gone(net, name: str):
    net.create("second")
    net.run("holder")
    hosts, leased_file = file_of(net.daemon, "holder", "hosts"), file_of(net.daemon, "holder", name)
    before = leased_file.stat()
    with leased(leased_file):
        net.daemon.docker("network", "connect", "second", "holder")
        # It has answered, and the holder has not let go yet.
        assert leased_file.stat().st_mtime_ns == before.st_mtime_ns
    address = net.address("holder", "second")
    until(lambda: address in hosts.read_text(), "the address is in /etc/hosts")
    resolver = file_of(net.daemon, "holder", "resolv.conf")
    until(lambda: "127.0.0.11" in resolver.read_text(), "names are resolved by the daemon")
    assert "127.0.0.11" in net.daemon.docker("exec", "holder", "cat", "/etc/resolv.conf").stdout


def test_a_lease_delays_no_start_of_a_linked_container(net):
    net.run("database")
    net.run("web", "--link", "database:db")
    with leased(file_of(net.daemon, "web", "hosts")):
        net.daemon.docker("restart", "-t", "0", "database")
        assert net.daemon.docker("inspect", "-f", "{{.State.Running}}", "database").stdout == "true\n"


@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_not_read(net, name: str):
    net.create("second")
    net.run("huge")
    net.daemon.docker("exec", "huge", "truncate", "-s", "4G", f"/etc/{name}")
    peak = highest_memory(net.daemon)
    net.daemon.docker("network", "connect", "second", "huge")
    assert highest_memory(net.daemon) < peak + (256 << 10)
    hosts = net.daemon.docker("exec", "huge", "cat", "/etc/hosts").stdout
    address = net.address("huge", "second")
    assert address in hosts and "\0" not in hosts
    if name == "resolv.conf":
        assert file_of(net.daemon, "huge", name).stat().st_size == 4 << 30, "it is the container's own now"


def highest_memory(daemon: Daemon) -> int:
    """KiB that the daemon ever had."""
    lines = Path(f"/proc/{daemon.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_hosts_is_written_anew_and_a_changed_resolv_conf_stays(net):
    net.create("second")
    net.run("own", "--add-host", "far:10.9.8.7")
    before = net.daemon.docker("exec", "own", "cat", "/etc/hosts").stdout
    spoil = "echo 10.1.1.1 mine >>/etc/hosts; echo nameserver 10.1.1.2 >/etc/resolv.conf"
    net.daemon.docker("exec", "own", "sh", "-c", spoil)
    net.daemon.docker("network", "connect", "second", "own")
    after = net.daemon.docker("exec", "own", "cat", "/etc/hosts").stdout
    assert "mine" not in after and after.startswith(before) and "10.9.8.7\tfar" in after
    assert net.daemon.docker("exec", "own", "cat", "/etc/resolv.conf").stdout == "nameserver 10.1.1.2\n"
    net.daemon.docker("network", "disconnect", "second", "own")
    assert net.daemon.docker("exec", "own", "cat", "/etc/hosts").stdout == before


def test_a_start_makes_new_files_whatever_became_of_the_old(net, tmp_path: Path):
    net.daemon.docker("create", "--name", "box", "busybox", "cat", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
    net.daemon.docker("start", "-a", "box")
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    for name, spoil in (("hosts", lambda path: path.symlink_to(victim)), ("hostname", os.mkfifo)):
        path = file_of(net.daemon, "box", name)
        path.unlink()
        spoil(path)
    assert "localhost" in net.daemon.docker("start", "-a", "box").stdout
    assert victim.read_text() == "untouched"
