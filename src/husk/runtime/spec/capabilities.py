"""The capabilities that a container gets: Docker's fourteen, plus and minus what the client asks for."""

from collections.abc import Collection, Iterable, Sequence

from husk.errors import InvalidParameter

# In the order of their numbers in linux/capability.h.
_NAMES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
_DEFAULT_NAMES = """
CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT MKNOD AUDIT_WRITE
SETFCAP
"""

ALL: tuple[str, ...] = tuple(f"CAP_{name}" for name in _NAMES.split())
DEFAULT: tuple[str, ...] = tuple(f"CAP_{name}" for name in _DEFAULT_NAMES.split())


def from_mask(mask: int) -> frozenset[str]:
    """The capabilities in a bit set such as CapBnd of /proc/self/status."""
    return frozenset(name for number, name in enumerate(ALL) if mask >> number & 1)


def resolve(
    add: Sequence[str] | None, drop: Sequence[str] | None, privileged: bool, available: Collection[str] = ALL
) -> tuple[str, ...]:
    """The capabilities of a container, in the kernel's order.

    `ALL` and privileged mean all that this host has `available`. Capabilities that are asked for by name stay even when
    the host lacks them: `limits.clamp` takes them away with a warning.
    """
    everything = [name for name in ALL if name in available]
    if privileged:
        return tuple(everything)
    added = _normalize(add or (), "CapAdd")
    dropped = _normalize(drop or (), "CapDrop")
    if "ALL" in added:
        chosen = set(everything) - dropped
    elif "ALL" in dropped:
        chosen = added
    else:
        chosen = set(DEFAULT) - dropped | added
    return tuple(name for name in ALL if name in chosen)


def _normalize(names: Iterable[str], field: str) -> set[str]:
    result = set()
    for name in names:
        upper = name.upper()
        if upper == "ALL":
            result.add(upper)
            continue
        if not upper.startswith("CAP_"):
            upper = "CAP_" + upper
        if upper not in ALL:
            raise InvalidParameter(f'invalid {field}: unknown capability: "{upper}"')
        result.add(upper)
    return result
