"""The rights of a process, tried out: prints, as JSON, the name of each deed with `ok` or the error's name.

Runs inside containers, with the host's Python bound into them (`mounts`), so it imports nothing but Python's own.
"""

import ctypes
import errno
import json
import os
import platform
import socket
import struct
import sys
from collections.abc import Callable

NEWNS, NEWUTS, NEWUSER = 0x20000, 0x4000000, 0x10000000

# Numbers of the kernel's tables; calls without a number are not tried, since the machine does not have them.
_X86 = {
    "acct": 163, "add_key": 248, "bpf": 321, "clock_settime": 227, "delete_module": 176, "fanotify_init": 300,
    "finit_module": 313, "fsopen": 430, "get_mempolicy": 239, "init_module": 175, "io_uring_setup": 425, "ioperm": 173,
    "iopl": 172, "kcmp": 312, "kexec_load": 246, "keyctl": 250, "mbind": 237, "memfd_create": 319, "mount": 165,
    "move_pages": 279, "name_to_handle_at": 303, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
    "personality": 135, "pidfd_open": 434, "pivot_root": 155, "process_vm_readv": 310, "ptrace": 101, "quotactl": 179,
    "reboot": 169, "request_key": 249, "sethostname": 170, "setns": 308, "settimeofday": 164, "swapoff": 168,
    "swapon": 167, "syslog": 103, "umount2": 166, "unshare": 272, "userfaultfd": 323, "vhangup": 153,
}  # fmt: skip
_ARM = {
    "acct": 89, "add_key": 217, "bpf": 280, "clock_settime": 112, "delete_module": 106, "fanotify_init": 262,
    "finit_module": 273, "fsopen": 430, "get_mempolicy": 236, "init_module": 105, "io_uring_setup": 425, "kcmp": 272,
    "kexec_load": 104, "keyctl": 219, "mbind": 235, "memfd_create": 279, "mount": 40, "move_pages": 239,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "open_tree": 428, "perf_event_open": 241, "personality": 92,
    "pidfd_open": 434, "pivot_root": 41, "process_vm_readv": 270, "ptrace": 117, "quotactl": 60, "reboot": 142,
    "request_key": 218, "sethostname": 161, "setns": 268, "settimeofday": 170, "swapoff": 225, "swapon": 224,
    "syslog": 116, "umount2": 39, "unshare": 97, "userfaultfd": 282, "vhangup": 58,
}  # fmt: skip
CALLS = {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine(), {})
_libc = ctypes.CDLL(None, use_errno=True)


def mounts() -> list[str]:
    """Return the mounts of the host that a container needs to run this, in the form of `Binds`."""
    places = {sys.base_prefix, "/lib", "/lib64", "/usr/lib", os.path.dirname(os.path.abspath(__file__))}
    return [f"{place}:{place}:ro" for place in sorted(places) if os.path.isdir(place)]


def command() -> str:
    return f"{os.path.realpath(sys.executable)} -I {os.path.abspath(__file__)}"


def call(name: str, *arguments: object) -> str:
    number = CALLS.get(name)
    if number is None:
        return "not tried"
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(int(str(a))) for a in arguments]
    if _libc.syscall(ctypes.c_long(number), *words) >= 0:
        return "ok"
    return errno.errorcode.get(ctypes.get_errno(), "?")


def deed(work: Callable[[], object]) -> str:
    try:
        result = work()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return result if isinstance(result, str) else "ok"


def in_child(work: Callable[[], str]) -> str:
    """Try a deed that changes the process in one of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, work().encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    return os.read(reader, 100).decode() or "died"


def write(path: str) -> str:
    return deed(lambda: os.close(os.open(path, os.O_WRONLY)))


def content(path: str) -> str:
    """Tell if it holds anything."""

    def look() -> str:
        if os.path.isdir(path):
            return "something" if os.listdir(path) else "empty"
        with open(path, "rb") as file:
            return "something" if file.read(1) else "empty"

    return deed(look)


def open_node(kind: int, major: int, minor: int) -> str:
    path = f"/node-{kind}-{major}-{minor}"
    os.mknod(path, kind | 0o600, os.makedev(major, minor))
    return deed(lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))


def traced() -> str:
    """A parent may look at its child, by each of the ways there are."""
    pid = os.fork()
    if pid == 0:
        while True:
            _libc.pause()
    try:
        attached = call("ptrace", 16, pid, 0, 0)
        if attached == "ok":
            os.waitpid(pid, 0)
            call("ptrace", 17, pid, 0, 0)
        return attached
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def sockets() -> dict[str, str]:
    def bound() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 80))

    def closed(family: int, kind: int, protocol: int = 0) -> Callable[[], None]:
        return lambda: socket.socket(family, kind, protocol).close()

    return {
        "raw socket": deed(closed(socket.AF_INET, socket.SOCK_RAW, 1)),
        "packet socket": deed(closed(socket.AF_PACKET, socket.SOCK_RAW)),
        "netlink": deed(closed(socket.AF_NETLINK, socket.SOCK_RAW)),
        "vsock": deed(closed(40, socket.SOCK_STREAM)),
        "port 80": deed(bound),
    }


def deeds() -> dict[str, str]:
    timespec = struct.pack("qq", 0, 0)
    block, char = 0o060000, 0o020000
    return {
        **{f"unshare {name}": in_child(lambda flag=flag: call("unshare", flag))  # type: ignore[misc]
           for name, flag in (("mount", NEWNS), ("uts", NEWUTS), ("user", NEWUSER))},
        "setns": in_child(lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0)),
        "mount tmpfs": call("mount", b"x", b"/home", b"tmpfs", 0, 0),
        "remount root": call("mount", b"x", b"/", b"x", 0x20, 0),
        "umount": call("umount2", b"/usr", 0),
        "new mounts": call("fsopen", b"tmpfs", 0),
        "open_tree": call("open_tree", -100, b"/", 1),
        "pivot_root": call("pivot_root", b"/", b"/"),
        "keyctl": call("keyctl", 0, -3, 0),
        "add_key": call("add_key", b"user", b"x", b"x", 1, -2),
        "request_key": call("request_key", b"user", b"x", 0, 0),
        "ptrace a child": in_child(traced),
        "init_module": call("init_module", 0, 0, b""),
        "finit_module": call("finit_module", 0, b"", 0),
        "delete_module": call("delete_module", b"x", 0),
        "kexec_load": call("kexec_load", 0, 0, 0, 0),
        "reboot": call("reboot", 0, 0, 0, 0),
        "swapon": call("swapon", b"/x", 0),
        "swapoff": call("swapoff", b"/x"),
        "settimeofday": call("settimeofday", timespec, 0),
        "clock_settime": call("clock_settime", 0, timespec),
        "syslog": call("syslog", 3, 0, 0),
        "bpf": call("bpf", 0, 0, 0),
        "perf_event_open": call("perf_event_open", 0, 0, -1, -1, 0),
        "userfaultfd": call("userfaultfd", 0),
        "io_uring_setup": call("io_uring_setup", 1, 0),
        "quotactl": call("quotactl", 0, 0, 0, 0),
        "acct": call("acct", 0),
        "iopl": call("iopl", 3),
        "ioperm": call("ioperm", 0, 1, 1),
        "open_by_handle_at": call("open_by_handle_at", -100, 0, 0),
        "sethostname": call("sethostname", b"x", 1),
        "vhangup": in_child(lambda: call("vhangup")),
        "kcmp": call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
        "fanotify_init": call("fanotify_init", 0, 0),
        "mbind": call("mbind", 0, 0, 0, 0, 0, 0),
        "personality": call("personality", 0xFFFFFFFF),
        "personality 0x400": in_child(lambda: call("personality", 0x0040000)),
        "memfd_create": call("memfd_create", b"x", 0),
        "pidfd_open": call("pidfd_open", os.getpid(), 0),
        **sockets(),
        "chroot": in_child(lambda: deed(lambda: os.chroot("/"))),
        "setuid": in_child(lambda: deed(lambda: os.setuid(1))),
        "chown": deed(lambda: os.chown("/", 0, 0)),
        "nice -5": in_child(lambda: deed(lambda: os.nice(-5))),
        "node of the disk": open_node(block, 254, 0),
        "node of memory": open_node(char, 1, 1),
        "node of the kernel's log": open_node(char, 1, 11),
        "node of tun": open_node(char, 10, 200),
        "node of null": open_node(char, 1, 3),
        **{f"write {path}": write(path) for path in (
            "/proc/sys/kernel/panic", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
            "/proc/irq/default_smp_affinity", "/proc/self/oom_score_adj",
            "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state",
            "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids/cgroup.procs",
        )},
        **{f"read {path}": content(path) for path in (
            "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi", "/proc/scsi", "/proc/asound",
            "/sys/firmware", "/proc/sched_debug", "/proc/latency_stats", "/proc/interrupts", "/proc/meminfo",
        )},
        **status(),
    }  # fmt: skip


def status() -> dict[str, str]:
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file.read().splitlines())
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    return {name: lines[name].strip() for name in names}


if __name__ == "__main__":
    print(json.dumps(deeds()))
