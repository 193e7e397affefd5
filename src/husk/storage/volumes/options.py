"""The options of a local volume: `type`, `device` and `o` are those of mount(8). Pure, but for `resolve`."""

import socket
from collections.abc import Mapping

from husk.errors import InvalidParameter, SystemFault
from husk.kernel.mount import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC
from husk.storage.volumes.store import MountCall

# Characters of a name, as DNS has them. The library takes long to read a longer one that is not ASCII.
_LONGEST_NAME = 253
_KNOWN = ("type", "o", "device", "size")
_NEEDS = {"device": ("type",), "type": ("device",), "o": ("device", "type")}

_SYNCHRONOUS, _MANDLOCK, _DIRSYNC = 0x10, 0x40, 0x80
_NOATIME, _NODIRATIME, _RELATIME, _STRICTATIME = 0x400, 0x800, 1 << 21, 1 << 24
_UNBINDABLE, _SLAVE, _SHARED = 1 << 17, 1 << 19, 1 << 20

# word: (sets it?, flag)
_FLAGS = {
    "defaults": (True, 0), "ro": (True, MS_RDONLY), "rw": (False, MS_RDONLY),
    "nosuid": (True, MS_NOSUID), "suid": (False, MS_NOSUID), "nodev": (True, MS_NODEV), "dev": (False, MS_NODEV),
    "noexec": (True, MS_NOEXEC), "exec": (False, MS_NOEXEC), "sync": (True, _SYNCHRONOUS),
    "async": (False, _SYNCHRONOUS), "dirsync": (True, _DIRSYNC),
    "mand": (True, _MANDLOCK), "nomand": (False, _MANDLOCK),
    "noatime": (True, _NOATIME), "atime": (False, _NOATIME), "nodiratime": (True, _NODIRATIME),
    "diratime": (False, _NODIRATIME), "relatime": (True, _RELATIME), "norelatime": (False, _RELATIME),
    "strictatime": (True, _STRICTATIME), "nostrictatime": (False, _STRICTATIME),
    "bind": (True, MS_BIND), "rbind": (True, MS_BIND | MS_REC),
}  # fmt: skip
_PROPAGATIONS = {
    "private": MS_PRIVATE, "rprivate": MS_PRIVATE | MS_REC, "shared": _SHARED, "rshared": _SHARED | MS_REC,
    "slave": _SLAVE, "rslave": _SLAVE | MS_REC, "unbindable": _UNBINDABLE, "runbindable": _UNBINDABLE | MS_REC,
}  # fmt: skip


def check_options(options: Mapping[str, str]) -> None:
    for name in options:
        if name not in _KNOWN:
            raise InvalidParameter(f'invalid option: "{name}"')
    if "size" in options:
        raise InvalidParameter("quota size requested but no quota support")
    for name in sorted(options):
        for needed in _NEEDS[name]:
            if needed not in options:
                raise InvalidParameter(f'missing required option: "{needed}"')
    if any("\0" in value for value in options.values()):
        raise InvalidParameter("a volume option contains a NUL character")


def mount_call(options: Mapping[str, str] | None) -> MountCall | None:
    """Return the mount for a volume with these options; None for a plain directory."""
    if not options or "device" not in options:
        return None
    flags, propagation, data = 0, 0, []
    for word in filter(None, options.get("o", "").split(",")):
        if word in _FLAGS:
            sets, flag = _FLAGS[word]
            flags = flags | flag if sets else flags & ~flag
        elif word in _PROPAGATIONS:
            propagation |= _PROPAGATIONS[word]
        else:
            data.append(word)
    return MountCall(options["device"], options["type"], flags, ",".join(data), propagation)


def address_of(call: MountCall) -> str:
    """The host that an NFS or CIFS mount names and that the kernel wants as an address; empty if there is none."""
    if call.fstype not in ("nfs", "nfs4", "cifs"):
        return ""
    return next((word.removeprefix("addr=") for word in call.data.split(",") if word.startswith("addr=")), "")


def with_address(call: MountCall, address: str) -> MountCall:
    words = [f"addr={address}" if word.startswith("addr=") else word for word in call.data.split(",")]
    return MountCall(call.source, call.fstype, call.flags, ",".join(words), call.propagation)


def resolve(host: str) -> str:
    """The address of a host. Blocks, for as long as the name servers let it."""
    if len(host) > _LONGEST_NAME:
        raise SystemFault(f"error resolving passed in network volume address: {host[:_LONGEST_NAME]}...: no such host")
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such host"
        raise SystemFault(f"error resolving passed in network volume address: {host}: {reason}") from error
