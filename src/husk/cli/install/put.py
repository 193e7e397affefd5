"""Put Husk on a host, a step at a time; every step is in the record before it is done, and none is done twice."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from husk.cli.install import group, openrc, systemd
from husk.cli.install.files import SCRIPT, UNITS, InstalledFile
from husk.cli.install.record import PLACE, Installed, below, digest, digest_of, inside, load, save, write_new
from husk.errors import HuskError, SystemFault
from husk.version import __version__

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def own_program(root: Path = Path("/")) -> list[str]:
    """Return the words that start this very husk, whatever PATH a service has; below another root the husk there."""
    beside = Path(sys.executable).parent / "husk"
    if root != Path("/"):
        if beside.is_relative_to(root):
            return [f"/{beside.relative_to(root)}"]
        usual = [f"{directory}/husk" for directory in _SYSTEM_PATH.split(":")]
        return [next((each for each in usual if is_below(root, each)), str(beside))]
    return [str(beside)] if os.access(beside, os.X_OK) else [sys.executable, "-m", "husk"]


def is_below(root: Path, program: str) -> bool:
    """Tell if a program is there, as whoever has `root` as theirs sees it."""
    return os.access(inside(root, program), os.X_OK)


def loose(program: str) -> list[str]:
    """Directories and files on the way to it that somebody else than root may change: what root runs, they run."""
    path = Path(program)
    found = []
    for each in {*_way(path), *_way(path.resolve())}:
        status = each.stat()
        if status.st_uid != 0 or (status.st_mode & 0o002 and not status.st_mode & 0o1000):
            found.append(str(each))
    return sorted(found)


def _way(path: Path) -> list[Path]:
    return [each for each in (path, *path.parents) if each.exists()]


class Putting:
    """One installation below `root`. What was done, and what was left out, is told line by line."""

    def __init__(self, root: Path, force: bool = False) -> None:
        self.root = root
        self.force = force
        self.record = load(root) or Installed()
        self.record.version = __version__

    def directory(self, path: str) -> None:
        """With all that leads there; those that are made are remembered."""
        parts = [str(each) for each in (*reversed(Path(path).parents), Path(path))]
        missing = [each for each in parts if not inside(self.root, each).is_dir()]
        for each in missing:
            # Where a link leads to what is not there yet, that is made.
            inside(self.root, each).mkdir(mode=0o755, parents=True)
        self.record.directories += [each for each in missing if each not in self.record.directories]

    def begin(self) -> None:
        try:
            self.directory(os.path.dirname(PLACE))
            save(self.root, self.record)
        except OSError as error:
            raise SystemFault(f"cannot write {below(self.root, PLACE)}: {error.strerror}") from error

    def group(self, name: str) -> Iterator[str]:
        if group.members(self.root, name) is not None:
            if name != self.record.group:
                self.record.group, self.record.group_made = name, False
                save(self.root, self.record)
            yield f"the group {name} is there"
            return
        group.make(self.root, name)
        self.record.group, self.record.group_made = name, True
        save(self.root, self.record)
        yield f"made the group {name}"

    def files(self, files: Iterable[InstalledFile]) -> Iterator[str]:
        for file in files:
            yield self._file(file)

    def _file(self, file: InstalledFile) -> str:
        place, wanted = below(self.root, file.path), digest(file.text)
        found, known = digest_of(place), self.record.files.get(file.path)
        if found == wanted and known == wanted:
            return f"{file.path} is there"
        if (found is not None or place.is_symlink()) and found not in (known, wanted) and not self.force:
            return f"left out {file.path}: there is another one, which is not ours or was changed (--force replaces it)"
        self.directory(os.path.dirname(file.path))
        self.record.files[file.path] = wanted
        save(self.root, self.record)
        beside = place.with_name(f".{place.name}.husk-new")
        try:
            write_new(beside, file.text.encode(), file.mode)
            beside.replace(place)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise SystemFault(f"cannot write {place}: {error.strerror}") from error
        return f"wrote {file.path}"

    def link(self, path: str, program: Sequence[str], named: bool = True) -> Iterator[str]:
        """Make the command for everybody, where it is none of the system's already; to a program that is not there only
        if that was `named`."""
        if len(program) != 1 or program[0] == path or not (named or is_below(self.root, program[0])):
            return
        place = below(self.root, path)
        if place.is_symlink() and os.readlink(place) == program[0]:
            yield f"{path} is there"
        elif os.path.lexists(place) or (self.root == Path("/") and shutil.which("husk", path=_SYSTEM_PATH)):
            return
        else:
            self.directory(os.path.dirname(path))
            self.record.links[path] = program[0]
            save(self.root, self.record)
            place.symlink_to(program[0])
            yield f"linked {path} to {program[0]}"

    def service(self, start: bool) -> Iterator[str]:
        """Make systemd start the units that were written; a unit that is somebody else's is left alone."""
        ours = [unit for unit in UNITS if any(path.endswith(f"/{unit}") for path in self.record.files)]
        if len(ours) < len(UNITS):
            yield "left out the service: not all of its units are ours (see above)"
            return
        self.record.units = ours
        running = systemd.running(self.root)
        save(self.root, self.record)
        try:
            systemd.enable(self.root, ours, start, running)
        except HuskError as error:
            yield f"left out: {error.message}"
            return
        if start and running:
            yield "systemd runs the daemon now and at every boot"
        else:
            yield "systemd runs the daemon from the next boot on" + (
                "" if start else ": systemctl start husk.socket husk.service starts it now"
            )

    def runlevel(self, start: bool) -> Iterator[str]:
        """Make OpenRC start the script that was written; a script that is somebody else's is left alone."""
        if SCRIPT not in self.record.files:
            yield "left out the service: its script is not ours (see above)"
            return
        self.record.openrc = True
        place = below(self.root, openrc.LINK)
        if not os.path.lexists(place):
            self.directory(os.path.dirname(openrc.LINK))
            self.record.links[openrc.LINK] = SCRIPT
            save(self.root, self.record)
            place.symlink_to(SCRIPT)
        save(self.root, self.record)
        if not (start and openrc.running(self.root)):
            yield "OpenRC runs the daemon from the next boot on" + (
                "" if start else ": rc-service husk start starts it now"
            )
            return
        try:
            openrc.start()
            yield "OpenRC runs the daemon now and at every boot"
        except HuskError as error:
            yield f"left out: {error.message}"
