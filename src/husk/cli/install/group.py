"""The group that may use the socket: is it there, who is in it, make it, remove it."""

import asyncio
import grp
import shutil
from pathlib import Path

from husk.cli.install.record import inside
from husk.errors import SystemFault
from husk.kernel import process

# What they read and write, with the copies and locks that have longer names.
_FILES = ("group", "gshadow", "passwd", "login.defs", ".pwd.lock", "default", "subgid", "subuid")


def members(root: Path, group: str) -> list[str] | None:
    """List the members of a group by /etc/group; None if there is no such group."""
    if root == Path("/"):
        try:
            return list(grp.getgrnam(group).gr_mem)
        except KeyError:
            return None
    try:
        lines = inside(root, "/etc/group").read_text().splitlines()
    except FileNotFoundError:
        return None
    for fields in (line.split(":") for line in lines):
        if fields[0] == group and len(fields) == 4:
            return [name for name in fields[3].split(",") if name]
    return None


def make(root: Path, group: str) -> None:
    """A group of the system. SystemFault says why not."""
    _run(root, {"groupadd": ["--system", group], "addgroup": ["-S", group]}, f"cannot make the group {group}")


def remove(root: Path, group: str) -> None:
    _run(root, {"groupdel": [group], "delgroup": [group]}, f"cannot remove the group {group}")


def _link(root: Path) -> Path | None:
    """A link in the way of the programs, which know a directory to put before their paths and no more."""
    places = [root / "etc", *(found for name in _FILES for found in (root / "etc").glob(f"{name}*"))]
    return next((place for place in places if place.is_symlink()), None)


def _run(root: Path, programs: dict[str, list[str]], problem: str) -> None:
    """With the first of the programs that there is: shadow's, or busybox's where the root is the host's own."""
    elsewhere = root != Path("/")
    if elsewhere and (link := _link(root)) is not None:
        # It would go through that to files of this host.
        raise SystemFault(f"{problem}: {link} is a link")
    for name, words in programs.items():
        if (found := shutil.which(name)) is None or (elsewhere and not name.startswith("group")):
            continue
        done = asyncio.run(process.run([found, *(["--prefix", str(root)] if elsewhere else []), *words]))
        if done.returncode != 0:
            raise SystemFault(f"{problem}: {done.stderr.decode(errors='replace').strip() or f'{name} failed'}")
        return
    raise SystemFault(f"{problem}: there is neither of {', '.join(programs)}")
