"""`docker run`: what a container may do, and what it must not be able to do."""

import re

import pytest

from tests.support.daemon import Daemon
from tests.support.running import run, sh


def effective_capabilities(daemon: Daemon, *options: str) -> int:
    return int(sh(daemon, "grep CapEff /proc/self/status", *options).split()[1], 16)


def test_capabilities(daemon: Daemon):
    assert effective_capabilities(daemon) == 0xA80425FB, "Docker's fourteen"
    assert effective_capabilities(daemon, "--cap-drop", "ALL") == 0
    assert effective_capabilities(daemon, "--cap-drop", "all", "--cap-add", "NET_BIND_SERVICE") == 1 << 10
    assert effective_capabilities(daemon, "--cap-add", "CAP_SYS_TIME") in (0xA80425FB | 1 << 25, 0xA80425FB)
    assert effective_capabilities(daemon, "--cap-drop", "CHOWN") == 0xA80425FB & ~1


def test_dropped_capability_is_gone(daemon: Daemon):
    done = daemon.docker("run", "--rm", "--cap-drop", "CHOWN", "busybox", "chown", "1", "/tmp", check=False)
    assert done.returncode == 1 and "not permitted" in done.stderr


def test_no_new_privileges(daemon: Daemon):
    option = ["--security-opt", "no-new-privileges"]
    assert sh(daemon, "grep NoNewPrivs /proc/self/status", *option).split()[1] == "1"


def test_privileged(daemon: Daemon):
    script = "mkdir /mnt; mount -t tmpfs x /mnt && echo mounted; grep Seccomp: /proc/self/status; "
    seen = sh(daemon, script + "test -w /proc/sys/kernel/hostname && echo w", "--privileged").split()
    assert seen == ["mounted", "Seccomp:", "0", "w"]
    assert effective_capabilities(daemon, "--privileged") > 0xA80425FB


DENIED = {
    "mount": "mkdir /m; mount -t tmpfs none /m",
    "bind mount": "mkdir /m; mount -o bind /etc /m",
    "remount": "mount -o remount,rw /sys",
    "unmount": "umount /proc/sys",
    "write a sysctl": "echo 1 > /proc/sys/kernel/panic",
    "write sysrq": "echo h > /proc/sysrq-trigger",
    "write sysfs": "echo 0 > /sys/kernel/profiling",
    "change a cgroup": "mkdir /sys/fs/cgroup/memory/x",
    "set the hostname": "hostname other",
    "set the clock": "date -s 2020-01-01 2>&1 | grep -v -e permitted -e 2020",
    "new namespaces": "unshare -m true",
    "new user namespace": "unshare -U true",
    "load a module": "insmod /bin/busybox",
    "raw disk": "mknod /tmp/disk b 8 0 && head -c1 /tmp/disk",
    "virtio disk": "mknod /tmp/disk b 254 0 && head -c1 /tmp/disk",
    "kernel memory": "mknod /tmp/mem c 1 1 && head -c1 /tmp/mem",
    "kmsg": "mknod /tmp/kmsg c 1 11 && head -c1 /tmp/kmsg",
    "fuse": "mknod /tmp/fuse c 10 229 && : < /tmp/fuse",
    "kernel log": "dmesg",
    "network interfaces": "ip link add d0 type dummy",
    "routes": "ip route add 192.0.2.0/24 dev lo",
    "swap": "dd if=/dev/zero of=/tmp/s bs=4k count=10 2>/dev/null; mkswap /tmp/s >/dev/null; swapon /tmp/s",
    "reboot": "reboot -f",
}


@pytest.fixture(scope="module")
def confined(module_daemon: Daemon) -> dict[str, tuple[int, str]]:
    """Everything a default container must not do, tried in one container: name -> (status, what was said)."""
    script = "\n".join(f"echo '>>> {name}'; ( {attempt} ) 2>&1; echo \"<<< $?\"" for name, attempt in DENIED.items())
    output = sh(module_daemon, script)
    found = re.findall(r">>> (.*)\n((?:.*\n)*?)<<< (\d+)\n", output)
    return {name: (int(status), said) for name, said, status in found}


@pytest.mark.parametrize("attempt", DENIED)
def test_a_default_container_must_not(confined: dict[str, tuple[int, str]], attempt: str):
    status, said = confined[attempt]
    assert status != 0, f"{attempt} was possible: {said}"
    assert "not found" not in said, f"the attempt itself is broken: {said}"


def test_masked_paths_tell_nothing(daemon: Daemon):
    files = "/proc/kcore /proc/keys /proc/timer_list /proc/interrupts"
    directories = "/proc/acpi /proc/scsi /sys/firmware"
    script = f"for f in {files}; do test -e $f && head -c 10 $f; done; ls {directories} 2>&1 | grep -v 'No such'"
    assert [line for line in sh(daemon, script).splitlines() if line and not line.endswith(":")] == []


def test_own_processes_only(daemon: Daemon):
    assert sh(daemon, "echo /proc/[0-9]*") == "/proc/1\n"
    assert int(sh(daemon, "ls -d /proc/[0-9]* | wc -l", "--pid", "host")) > 2


def test_devices(daemon: Daemon):
    # "core" is a link to /proc/kcore, which is masked. runc makes it only where the host has that file.
    assert [name for name in sh(daemon, "ls /dev").split() if name != "core"] == [
        "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero",
    ]  # fmt: skip
    assert sh(daemon, "echo x > /dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c") == "4\n4\n"


def test_the_host_shows_nothing_of_the_container_after_it_is_gone(daemon: Daemon):
    run(daemon, "busybox", "true")
    assert list((daemon.config.data_root / "containers").iterdir()) == []
    assert list((daemon.config.exec_root / "containers").iterdir()) == []
