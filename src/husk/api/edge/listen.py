"""Sockets that the API listens on: Unix sockets with a group, TCP addresses, and those that systemd holds for us."""

import errno
import grp
import os
import socket
import stat
from collections.abc import MutableMapping
from pathlib import Path

from husk.config.values import loopback, unguarded
from husk.errors import InvalidParameter, SystemFault
from husk.text.digits import read_number

# The first descriptor that systemd passes to a service with sockets of its own.
_FIRST_PASSED = 3
_MOST_PASSED = 1 << 16
_HIGHEST_GROUP = (1 << 32) - 2
_KEEPALIVE_SECONDS = 15
USUAL_GROUP = "docker"


def listen(
    host: str, group: str, loopback_only: bool = False, flag: str = "-H", usual_group: str = USUAL_GROUP
) -> list[tuple[socket.socket, str]]:
    """The sockets of one host as it is written in the settings, each with the address that clients use.

    With `loopback_only` a TCP socket of systemd that others reach is refused; what is named in the settings has been
    judged with them. `flag` is where another address can be chosen. A host need not have the usual group.
    """
    scheme, separator, rest = host.partition("://")
    if scheme == "unix" and rest.startswith("/"):
        if (descriptor := _held(rest, os.environ)) is not None:
            return [_adopted(descriptor)]
        return [(_listen_unix(Path(rest), group, usual_group), host)]
    if scheme == "tcp":
        return [_listen_tcp(host, rest, flag)]
    if scheme == "fd" and separator:
        found = _passed(host, rest, os.environ)
        for _, address in found:
            if loopback_only and not loopback(address):
                raise unguarded(address)
        return found
    raise InvalidParameter(f"invalid host {host!r}: expected unix:///PATH, tcp://ADDRESS:PORT or fd://")


def held_by_systemd(host: str) -> bool:
    """Tell if systemd listens there and has passed us the socket: then the socket's file is not ours to remove."""
    return host.startswith("fd://") or _held(host.removeprefix("unix://"), os.environ) is not None


def _held(path: str, environment: MutableMapping[str, str]) -> int | None:
    """The descriptor of systemd's socket at this path, so that a unit needs no `-H fd://` beside the settings."""
    for descriptor in _descriptors(environment):
        try:
            with socket.socket(fileno=os.dup(descriptor)) as each:
                if each.family == socket.AF_UNIX and os.path.samefile(str(each.getsockname()), path):
                    return descriptor
        except OSError:
            continue
    return None


def _descriptors(environment: MutableMapping[str, str]) -> range:
    """Return the descriptors that systemd has passed to this very process."""
    count = read_number(environment.get("LISTEN_FDS", ""), most=_MOST_PASSED) or 0
    ours = environment.get("LISTEN_PID") == str(os.getpid())
    return range(_FIRST_PASSED, _FIRST_PASSED + count) if ours else range(0)


def _passed(host: str, which: str, environment: MutableMapping[str, str]) -> list[tuple[socket.socket, str]]:
    """Sockets that systemd holds for us: all, or the one of that name or descriptor number."""
    descriptors = _descriptors(environment)
    if not descriptors:
        raise SystemFault(f"no sockets found for {host}: it needs systemd's socket activation (a husk.socket unit)")
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    found = []
    for position, descriptor in enumerate(descriptors):
        name = names[position] if position < len(names) else ""
        if which in ("", "*", str(descriptor), name):
            found.append(_adopted(descriptor))
    if not found:
        raise SystemFault(f"no such socket: systemd passed none for {host}")
    return found


def _adopted(descriptor: int) -> tuple[socket.socket, str]:
    os.set_inheritable(descriptor, False)
    try:
        listener = socket.socket(fileno=os.dup(descriptor))
    except OSError as error:
        raise SystemFault(f"descriptor {descriptor} of systemd is no socket: {error.strerror or error}") from error
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return listener, f"unix://{name}"
    return listener, f"tcp://{f'[{name[0]}]' if ':' in name[0] else name[0]}:{name[1]}"


def _listen_unix(path: Path, group: str, usual: str) -> socket.socket:
    """A socket at `path`, for root and the group; the socket of a dead daemon is replaced, a live one is not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unfit(path, error) from error
    if path.exists():
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise SystemFault(
                f"cannot listen on {path}: it exists and is no socket. Move it away, or choose another path with -H"
            )
        if _alive(path):
            raise SystemFault(
                f"cannot listen on {path}: another daemon is listening there. Stop it, or choose another path with -H"
            )
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody may connect before mode and group are set: a socket takes connections only after listen().
        listener.bind(str(path))
        if group and (number := _group_number(group, usual)) is not None:
            os.chown(path, -1, number)
        path.chmod(0o660)
    except OSError as error:
        listener.close()
        raise _unfit(path, error) from error
    except InvalidParameter:
        listener.close()
        path.unlink()
        raise
    return listener


def _group_number(group: str, usual: str) -> int | None:
    """None if it is the usual one, which a host need not have: then the socket is root's alone, as with dockerd."""
    if (number := read_number(group, most=_HIGHEST_GROUP)) is not None:
        return number
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        if group == usual:
            return None
        raise InvalidParameter(
            f"there is no group {group} on this host: make it (groupadd {group}), or name another with --group"
        ) from None


def _unfit(path: Path, error: OSError) -> SystemFault:
    return SystemFault(f"cannot listen on {path}: {error.strerror or error}. Choose another path with -H")


def _told(error: OSError, flag: str) -> str:
    """Say why a port cannot be had, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"another program has this port (`ss -ltnp` tells which). Stop it, or choose another port with {flag}"
    if error.errno == errno.EADDRNOTAVAIL:
        return "no interface of this host has this address (`ip address` tells which there are)"
    return error.strerror or str(error)


def _alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def _listen_tcp(host: str, rest: str, flag: str) -> tuple[socket.socket, str]:
    address, _, said = rest.rpartition(":")
    if (port := read_number(said, most=0xFFFF)) is None:
        raise InvalidParameter(f"invalid host {host!r}: expected tcp://ADDRESS:PORT")
    bare = address.strip("[]")
    try:
        listener = socket.create_server(
            (bare or "0.0.0.0", port), family=socket.AF_INET6 if ":" in bare else socket.AF_INET
        )
    except OSError as error:
        raise SystemFault(f"cannot listen on {host}: {_told(error, flag)}") from error
    # Connections inherit it: a client whose machine has gone must not be served for ever.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS)
    return listener, f"tcp://{address or '0.0.0.0'}:{listener.getsockname()[1]}"
