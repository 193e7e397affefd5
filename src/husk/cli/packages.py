"""Packages of the things that a host needs. They depend on the distribution, of which /etc/os-release tells.

The names are in packages.txt, where scripts/setup reads them, too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("packages.txt")
_RELEASES = (Path("/etc/os-release"), Path("/usr/lib/os-release"))


class Family(NamedTuple):
    """Distributions with the same packages, and the commands that install them and that fetch new lists of them."""

    name: str
    ids: tuple[str, ...]
    install: tuple[str, ...]
    refresh: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        return self.install[0]


FAMILIES = (
    Family(
        "debian",
        ("debian", "ubuntu"),
        ("apt-get", "install", "-y", "-q", "--no-install-recommends"),
        ("apt-get", "update", "-q"),
    ),
    Family(
        "fedora",
        ("fedora", "rhel", "centos"),
        ("dnf", "install", "-y", "-q", "--setopt=install_weak_deps=False"),
    ),
    Family(
        "suse",
        ("suse", "opensuse", "opensuse-leap", "opensuse-tumbleweed", "sles"),
        ("zypper", "--non-interactive", "install", "--no-recommends"),
        ("zypper", "--non-interactive", "refresh"),
    ),
    # Without a refresh: new lists beside old packages are what Arch warns of. `pacman -Syu` is its user's to do.
    Family("arch", ("arch", "archlinux"), ("pacman", "-S", "--needed", "--noconfirm")),
    Family("alpine", ("alpine",), ("apk", "add", "-q"), ("apk", "update", "-q")),
)


def family_of(release: str) -> Family | None:
    """By the text of an os-release file: its own ID first, then those that it says to be like."""
    for word in _ids(release):
        for family in FAMILIES:
            if word in family.ids:
                return family
    return None


def _ids(release: str) -> Iterator[str]:
    fields = dict(line.split("=", 1) for line in release.splitlines() if "=" in line and not line.startswith("#"))
    for name in ("ID", "ID_LIKE"):
        yield from fields.get(name, "").strip().strip("\"'").lower().split()


def here(releases: Sequence[Path] = _RELEASES) -> Family | None:
    """The family of this host."""
    for path in releases:
        if path.is_file():
            return family_of(path.read_text(errors="replace"))
    return None


def package(need: str, family: Family | None, table: Path = TABLE) -> str | None:
    """The package that has it; None where there is none, or the distribution is not known."""
    if family is None:
        return None
    lines = [line.split() for line in table.read_text().splitlines() if line and not line.startswith("#")]
    names = [each.name for each in FAMILIES]
    found = {words[0]: words[1:] for words in lines}[need][names.index(family.name)]
    return None if found == "-" else found


def cure(need: str, family: Family | None, table: Path = TABLE) -> str:
    """Return the command that installs a need, or say that it is to be installed by hand if no package has it."""
    found = package(need, family, table)
    if found is None or family is None:
        where = "this distribution is not known" if family is None else f"{family.name} has no package of it"
        return f"install {need} by hand: {where}"
    words = ("zypper", "install") if family.program == "zypper" else family.install[:2]
    return f"{' '.join(words)} {found}"
