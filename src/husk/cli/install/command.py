"""`husk install` and `husk uninstall`, as they are typed."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from husk.cli.install import files, openrc, put, record, systemd, take
from husk.cli.install.record import inside
from husk.cli.kit.command import HuskCommand, flag
from husk.cli.kit.writing import complain, say
from husk.config import Config
from husk.config.load import SettingsSource
from husk.config.settings import from_flags
from husk.errors import Forbidden, HuskError, InvalidParameter

_ROOT = click.option("--root", metavar="DIR", default="/", help="Put everything below this directory, for images.")
_GROUP = "docker"
_NO_SYSTEMD = (
    "left out the service: there is neither systemd nor OpenRC {where}. "
    "Have your own supervisor run as root: {program} serve --group {group}"
)


@click.command(cls=HuskCommand)
@_ROOT
@click.option("--prefix", metavar="DIR", default="/usr/local", help="Where command, completions and manual page go.")
@click.option("-G", "--group", metavar="NAME", default=_GROUP, help="Group that may use the socket. [docker]")
@click.option("--program", metavar="PATH", default="", help="The husk that the service runs. [this one]")
@flag("--start", default=True, help="Start the daemon now; --start=false leaves that to the next boot.")
@flag("--force", help="Replace files that are there and not ours.")
@click.pass_context
def install(context: click.Context, root: str, prefix: str, group: str, program: str, start: bool, force: bool) -> None:
    """Make Husk a service of this host: for systemd or OpenRC, with group, completions and manual page.

    Doing it again changes nothing. `husk uninstall` takes back what it did.
    """

    place = _root(root)
    if not prefix.startswith("/"):
        raise InvalidParameter(f"--prefix {prefix} is no absolute path")
    if program and not program.startswith("/"):
        raise InvalidParameter(f"--program {program} is no absolute path")
    words = [program] if program else put.own_program(place)
    work = put.Putting(place, force)
    work.begin()
    with_systemd = systemd.present(place)
    with_openrc = not with_systemd and openrc.present(place)
    try:
        _tell(work.group(group))
    except HuskError as error:
        say(f"left out the group: {error.message}; only root may use the socket")
        group = "root"
    if with_systemd:
        _tell(work.files(files.units(words, group)))
    elif with_openrc:
        _tell(work.files([files.script(words, group)]))
    _tell(work.files(files.reading(context.find_root(), prefix.rstrip("/"))))
    _tell(work.link(f"{prefix.rstrip('/')}/bin/husk", words, bool(program)))
    if with_systemd:
        _tell(work.service(start))
    elif with_openrc:
        _tell(work.runlevel(start))
    else:
        where = "here" if place == Path("/") else f"below {place}"
        say(_NO_SYSTEMD.format(program=" ".join(words), group=group, where=where))
    if not put.is_below(place, words[0]):
        complain(f"husk: there is no {words[0]} below {place}: install husk there, or name it with --program")
    if place == Path("/") and (loose := put.loose(words[0])):
        complain(f"husk: the service runs as root what others than root may change: {', '.join(loose)}")
    if group != "root":
        there = "" if place == Path("/") else f"--root {place} "
        say(f"Who is in the group {group} may use {files.SOCKET}, and is root by it: usermod {there}-aG {group} NAME")


@click.command(cls=HuskCommand)
@_ROOT
@flag("--force", help="Remove also files that were changed.")
def uninstall(root: str, force: bool) -> None:
    """Take back what `husk install` did, and say what is left: data, containers, settings."""

    place = _root(root)
    found = record.load(place)
    if found is None:
        raise InvalidParameter(f"nothing was installed here: there is no {record.below(place, record.PLACE)}")
    config = _config(place)
    _tell(take.take_back(place, found, force))
    for line in take.left(place, config.data_root, config.exec_root, found):
        say(f"left {line}")


def _config(root: Path) -> Config:
    """The settings of the daemon there; the usual ones where they cannot be read."""

    file = inside(root, "/etc/husk/daemon.json")
    try:
        return SettingsSource(from_flags({}), file).load() if file.is_file() else Config()
    except HuskError:
        return Config()


def _root(given: str) -> Path:
    place = Path(given).resolve()
    if not place.is_dir():
        raise InvalidParameter(f"--root {given} is no directory")
    if place == Path("/") and os.geteuid() != 0:
        raise Forbidden("this needs root: run it again with sudo")
    return place


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
