"""What `husk install` has put on a host, kept beside the settings, so that `husk uninstall` takes back exactly that."""

import hashlib
import os
from pathlib import Path

import msgspec

from husk.errors import SystemFault

PLACE = "/etc/husk/installed.json"


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
        return None if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def below(root: Path, path: str) -> Path:
    """The place of a host's path below `root`."""
    return root / path.lstrip("/")


def load(root: Path) -> Installed | None:
    """What was put below `root`, or None if nothing was."""
    place = below(root, PLACE)
    try:
        return msgspec.json.decode(place.read_bytes(), type=Installed)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SystemFault(f"cannot read {place}, which says what was installed: {error}") from error


def save(root: Path, installed: Installed) -> None:
    """On the disk before the things that it names are made."""
    place = below(root, PLACE)
    beside = place.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(installed), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(place)
