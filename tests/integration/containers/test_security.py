"""The default security profile, tried from inside: what must be denied is denied, what must work works."""

import json
from collections.abc import Iterator

import pytest

from tests.support import probe
from tests.support.daemon import RUNTIME, Daemon

DENIED = [
    "unshare mount", "unshare uts", "unshare user", "setns", "mount tmpfs", "remount root", "umount", "new mounts",
    "open_tree", "pivot_root", "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module",
    "kexec_load", "reboot", "swapon", "swapoff", "settimeofday", "clock_settime", "syslog", "bpf", "perf_event_open",
    "userfaultfd", "io_uring_setup", "quotactl", "acct", "iopl", "ioperm", "open_by_handle_at", "sethostname",
    "vhangup", "kcmp", "fanotify_init", "mbind", "personality 0x400", "vsock", "nice -5", "node of the disk",
    "node of memory", "node of the kernel's log", "node of tun",
]  # fmt: skip
WORKS = [
    "ptrace a child", "personality", "memfd_create", "pidfd_open", "raw socket", "packet socket", "netlink", "port 80",
    "chroot", "setuid", "chown", "node of null", "write /proc/self/oom_score_adj",
]  # fmt: skip
READ_ONLY = [
    "write /proc/sys/kernel/panic", "write /proc/sys/net/ipv4/ip_forward", "write /proc/irq/default_smp_affinity",
    "write /sys/kernel/mm/transparent_hugepage/enabled", "write /sys/power/state",
]  # fmt: skip
MASKED = ["kcore", "keys", "timer_list", "acpi", "scsi", "asound", "sched_debug", "latency_stats", "interrupts"]

pytestmark = pytest.mark.skipif(not probe.CALLS, reason="the probe does not know the calls of this machine")
# Of x86 alone.
MISSING = {"iopl", "ioperm"} - set(probe.CALLS)


def tried(daemon: Daemon, *options: str) -> dict[str, str]:
    bound = [word for mount in probe.mounts() for word in ("-v", mount)]
    done = daemon.docker("run", "--rm", *options, *bound, "busybox", *probe.command().split())
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def deeds(module_daemon: Daemon) -> Iterator[dict[str, str]]:
    yield tried(module_daemon)


@pytest.mark.parametrize("deed", [deed for deed in DENIED if deed not in MISSING])
def test_what_is_denied(deeds: dict[str, str], deed: str) -> None:
    if RUNTIME == "runc" and deed == "node of tun":
        pytest.skip("runc lets every container open this one, before its version 1.2")
    assert deeds[deed] == "EPERM"


@pytest.mark.parametrize("deed", WORKS)
def test_what_works(deeds: dict[str, str], deed: str) -> None:
    assert deeds[deed] == "ok"


@pytest.mark.parametrize("deed", READ_ONLY)
def test_what_is_read_only(deeds: dict[str, str], deed: str) -> None:
    assert deeds[deed] in ("EROFS", "ENOENT")


@pytest.mark.parametrize("name", MASKED)
def test_what_is_masked(deeds: dict[str, str], name: str) -> None:
    assert deeds[f"read /proc/{name}"] in ("empty", "ENOENT")


def test_the_firmware_is_masked(deeds: dict[str, str]) -> None:
    assert deeds["read /sys/firmware"] in ("empty", "ENOENT")


def test_the_fourteen_capabilities_and_no_more(deeds: dict[str, str]) -> None:
    default = "00000000a80425fb"
    assert [deeds[name] for name in ("CapPrm", "CapEff", "CapBnd")] == [default] * 3
    assert [deeds[name] for name in ("CapInh", "CapAmb")] == ["0" * 16] * 2
    assert deeds["Seccomp"] == "2"


def test_the_devices_there_are(daemon: Daemon) -> None:
    shown = daemon.docker("run", "--rm", "busybox", "ls", "/dev").stdout.split()
    # "core" is a link to /proc/kcore, which is masked. runc makes it only where the host has that file.
    assert set(shown) - {"console", "core"} == {
        "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero",
    }  # fmt: skip


def test_an_administrators_capability_opens_its_calls(daemon: Daemon) -> None:
    opened = tried(daemon, "--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined")
    assert [opened[name] for name in ("unshare mount", "mount tmpfs", "sethostname", "new mounts")] == ["ok"] * 4
    for name in ("keyctl", "init_module", "reboot", "swapon", "kexec_load", "settimeofday", "io_uring_setup"):
        assert opened[name] == "EPERM", name


def test_without_a_filter_the_kernel_still_checks(daemon: Daemon) -> None:
    opened = tried(daemon, "--security-opt", "seccomp=unconfined")
    assert opened["keyctl"] == "ok" and opened["Seccomp"] == "0"
    for name in ("mount tmpfs", "swapon", "settimeofday"):
        assert opened[name] == "EPERM", name
