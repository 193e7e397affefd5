"""The record of all that `husk install` has put on a host, kept beside the settings, so that `husk uninstall` takes
back exactly that."""

import hashlib
import os
import re
import stat
from pathlib import Path

import msgspec

from husk.cli.install.files import UNITS
from husk.errors import SystemFault
from husk.kernel.rooted import walk_path
from husk.text.documents import MalformedDocument, decode

PLACE = "/etc/husk/installed.json"
# As many as the kernel follows.
_MOST_LINKS = 40
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


class Installed(msgspec.Struct, omit_defaults=True):
    """Paths are those of the host, without the root that it was installed below."""

    version: str = ""
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    directories: list[str] = []
    group: str = ""
    # Whether the group was made; one that was there is not ours to remove.
    group_made: bool = False
    units: list[str] = []
    # Whether the service is OpenRC's.
    openrc: bool = False


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(path: Path) -> str | None:
    """Of what is there now; None where there is no plain file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(path.lstat().st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def below(root: Path, path: str) -> Path:
    """The place of a host's path below `root`; the thing itself, where it is a link."""
    above, name = os.path.split(path.rstrip("/"))
    return inside(root, above) / name


def inside(root: Path, path: str) -> Path:
    """Find the place below `root` of a host's path: links of an image mean its own files, never this host's."""
    if root == Path("/"):
        return root / path.lstrip("/")

    def look(way: list[str], name: str, last: bool) -> str | None:
        here = root.joinpath(*way, name)
        return os.readlink(here) if here.is_symlink() else None

    try:
        return root.joinpath(*walk_path(path, look, _MOST_LINKS))
    except OSError as error:
        raise SystemFault(f"{path} below {root} leads nowhere: {error.strerror}") from error


def write_new(place: Path, data: bytes, mode: int = 0o644) -> None:
    """A file that is not there, on the disk; what has its name goes, and no link of that name is followed."""
    place.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(place, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def load(root: Path) -> Installed | None:
    """Read the record of what was put below `root`; None if nothing was, SystemFault if it is no record of ours."""
    place = inside(root, PLACE)
    try:
        found = decode(place.read_bytes(), Installed)
    except FileNotFoundError:
        return None
    except (OSError, MalformedDocument) as error:
        raise SystemFault(f"cannot read {place}, which says what was installed: {error}") from error
    # An image's own record is not to have programs of this host told anything else.
    if set(found.units) - set(UNITS) or (found.group and not _GROUP.fullmatch(found.group)):
        raise SystemFault(f"{place} is no record of ours: it names units or a group that cannot be")
    return found


def save(root: Path, installed: Installed) -> None:
    """On the disk before the things that it names are made."""
    place = below(root, PLACE)
    beside = place.with_suffix(".new")
    write_new(beside, msgspec.json.format(msgspec.json.encode(installed), indent=2) + b"\n")
    beside.replace(place)
