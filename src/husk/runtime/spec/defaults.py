"""Defaults that a container gets though nobody asked for them: programs in Docker containers rely on them."""

from types import MappingProxyType

SHM_SIZE = 64 * 1024 * 1024

NAMESPACES = MappingProxyType({"mount": "", "network": "", "uts": "", "pid": "", "ipc": ""})

# Files that tell about the host or let a container change it: replaced by an empty file or directory.
MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)

READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

# Programs without root may listen on low ports and send pings: the network namespace is the container's own.
NETWORK_SYSCTLS = MappingProxyType(
    {"net.ipv4.ip_unprivileged_port_start": "0", "net.ipv4.ping_group_range": "0 2147483647"}
)

# type, major, minor, access: any node may be made, these may be used: null, zero, full, random, urandom, tty, console,
# ptmx, ptys.
DEVICE_RULES: tuple[tuple[str, int | None, int | None, str], ...] = (
    ("c", None, None, "m"),
    ("b", None, None, "m"),
    ("c", 1, 3, "rwm"),
    ("c", 1, 5, "rwm"),
    ("c", 1, 7, "rwm"),
    ("c", 1, 8, "rwm"),
    ("c", 1, 9, "rwm"),
    ("c", 5, 0, "rwm"),
    ("c", 5, 1, "rwm"),
    ("c", 5, 2, "rwm"),
    ("c", 136, None, "rwm"),
)
