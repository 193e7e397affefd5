"""The file system of a build's step: its root, and what is mounted into it, made before the runtime sees any of it.

A step has the paths of a container (`paths`), without a record: `exec-root/mounts/<id>` has its root and what is
mounted for it, `exec-root/containers/<id>` is its bundle, with what is written for it. One with mounts also has a
directory `data-root/containers/<id>`: overlayfs takes many layers only if they are near each other. A daemon that
starts finds these without an owner, and removes them (`leftovers`).

What a step has changed becomes a layer, so nothing of ours may be among it. The places that things are mounted on are
therefore in a directory below all layers, where the image has none. Only where the image hides that one (it has removed
/etc/hosts, or has a link there) is something made in the writable directory; `release` takes it out again.

Everything is mounted here and not by the runtime, which would follow an image's links to its own /proc. All of it
blocks.
"""

import contextlib
import errno
import os
import posixpath
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import rooted, views
from husk.kernel.mount import MS_NODEV, MS_NOSUID, MS_RDONLY, bind, mount, mount_overlay
from husk.kernel.trees import discard_tree
from husk.runtime.assembly import staging
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.root import ContainerRoot
from husk.runtime.assembly.stubs import Stubs
from husk.runtime.spec.document import SpecMount

# What the runtime mounts over: what is put there before, nobody would see.
_RUNTIMES = ("/dev/", "/sys/")
_DIRECTORIES = ("proc", "sys", "dev/pts", "dev/shm", "etc")
_FILES = ("etc/hosts", "etc/resolv.conf")
_PRIVATE = "private"


class Layered(msgspec.Struct, frozen=True):
    """Directories on top of each other, the topmost first; without `upper` nothing can be written.

    The root directory of the whole has the owner and mode of `upper`: whoever made that has given it the right ones.
    """

    lower: tuple[str, ...]
    upper: str = ""
    work: str = ""


class Directory(msgspec.Struct, frozen=True):
    """A directory of ours."""

    path: str


class MemoryFiles(msgspec.Struct, frozen=True):
    """A tmpfs; a size of 0 is the kernel's choice."""

    size: int = 0


class Secret(msgspec.Struct, frozen=True):
    data: bytes
    uid: int = 0
    gid: int = 0
    mode: int = 0o400

    def __repr__(self) -> str:
        return "Secret()"


class Socket(msgspec.Struct, frozen=True):
    """A Unix socket that we listen on."""

    uid: int = 0
    gid: int = 0
    mode: int = 0o600


class StepMount(msgspec.Struct, frozen=True, kw_only=True):
    """One place in a step's file system; `selector` is a path in the source."""

    target: str
    source: Layered | Directory | MemoryFiles | Secret | Socket
    selector: str = ""
    read_only: bool = False


class StepFiles:
    """The files of one step. `release` may be called at any time, any number of times."""

    def __init__(self, paths: Paths, step_id: str) -> None:
        self._directory = paths.directory(step_id)
        self._staging = paths.staging(step_id)
        self._bundle = paths.bundle(step_id)
        self._points = paths.step_mount_points
        self._root = ContainerRoot(self._staging)
        self._stubs: list[Stubs] = []
        # Those of the mounts, in their order, listening.
        self.sockets: list[socket.socket] = []
        self._private_size = 0

    def assemble(
        self, root: Layered, mounts: Sequence[StepMount], hosts: str, resolv_conf: str
    ) -> tuple[SpecMount, ...]:
        """Mount it all; what of it is left to the runtime. When this fails, `release` is still to be called."""
        self._bundle.mkdir(mode=0o700, parents=True, exist_ok=True)  # a runtime may wait there already
        self._staging.mkdir(mode=0o700, parents=True)
        make_points(self._points)
        for path, text in ((self._hosts, hosts), (self._resolv_conf, resolv_conf)):
            path.write_text(text, errors="surrogateescape")
            path.chmod(0o644)
        self._private_size = _room_for([one.source.data for one in mounts if isinstance(one.source, Secret)])
        sources = [self._stage(number, one) for number, one in enumerate(mounts)]
        self._mount_root(root, mounts)
        uppers = [root.upper, *(one.source.upper for one in mounts if isinstance(one.source, Layered))]
        try:
            return self._fill(mounts, sources)
        finally:
            self._stubs = [Stubs(Path(upper)) for upper in uppers if upper]

    @property
    def rootfs(self) -> Path:
        return self._root.merged

    @property
    def _hosts(self) -> Path:
        return self._bundle / "hosts"

    @property
    def _resolv_conf(self) -> Path:
        return self._bundle / "resolv.conf"

    def text_of(self, path: str) -> str:
        return self._root.text_of(path)

    def make_directory(self, path: str, uid: int, gid: int) -> None:
        """Make the directory that the process begins in, with the user's own as its owner, where there is none."""
        try:
            rooted.make_directories(self.rootfs, path, (uid, gid))
        except OSError as error:
            raise InvalidParameter(f"failed to create working directory {path[:200]}: {_reason(error)}") from None

    def write_bundle(self, config: dict[str, object]) -> bytes:
        """Complete the bundle; its configuration as it is written."""
        self._bundle.mkdir(mode=0o700, parents=True, exist_ok=True)
        encoded = msgspec.json.encode(config)
        # By a rename: a runtime may wait for it at a pipe of this name (`runtime.begun`).
        whole = self._bundle / "config.whole"
        whole.write_bytes(encoded)
        whole.rename(self._bundle / "config.json")
        return encoded

    def release(self) -> None:
        """Unmount and remove everything but what the step has written. SystemFault if something stays."""
        self.unmount()
        self.remove()

    def unmount(self) -> None:
        """Unmount all of the step, so that what it has written can be kept. SystemFault if something stays mounted."""
        failures: list[str] = []
        for each in self.sockets:
            each.close()
        self.sockets = []
        for work in (self._root.unmount, self._unstage, *self._take_stubs()):
            try:
                work()
            except OSError as error:
                failures.append(f"{error.filename}: {_reason(error)}" if error.filename else _reason(error))
        _check(failures)

    def remove(self) -> None:
        """Remove what was written for it, once nothing is mounted any more. SystemFault if something stays."""
        _check([f"{each} cannot be deleted" for each in (self._bundle, self._directory) if not discard_tree(each)])

    def _unstage(self) -> None:
        with contextlib.suppress(OSError):
            # As it is without mounts of its own. A directory with a mount is refused: then the table of mounts is read.
            os.rmdir(self.rootfs)
            os.rmdir(self._staging)
        staging.unstage(self._staging)

    def _take_stubs(self) -> Iterator[Callable[[], None]]:
        while self._stubs:
            yield self._stubs.pop().remove

    # --- sources -----------------------------------------------------------------------------------------------------

    def _stage(self, number: int, one: StepMount) -> Path | None:
        """Put the source of a mount at a place of its own and return that; None for a source that has none."""
        place = self._staging / str(number)
        match one.source:
            case MemoryFiles():
                return None
            case Secret():
                return self._in_memory(number, one.source)
            case Socket():
                return self._listen(number, one.source)
            case Directory():
                self._bind(Path(one.source.path), one, place)
            case Layered():
                whole = place.with_name(f"{place.name}.whole") if one.selector or one.read_only else place
                whole.mkdir()
                self._layer(one.source, whole)
                if whole != place:
                    self._bind(whole, one, place)
        return place

    def _layer(self, source: Layered, place: Path) -> None:
        empty = self._empty()
        if source.upper:
            mount_overlay(source.lower or [empty], source.upper, source.work, str(place), volatile=True)
        elif source.lower:
            # An overlay without a writable directory needs two others.
            mount_overlay([*source.lower, empty], "", "", str(place))
        else:
            bind(empty, str(place), readonly=True)

    def _empty(self) -> str:
        empty = self._directory / "empty"
        empty.mkdir(mode=0o755, parents=True, exist_ok=True)
        return str(empty)

    def _bind(self, whole: Path, one: StepMount, place: Path) -> None:
        """Mount what the selector names; a link in it leads nowhere but inside."""
        try:
            found = rooted.open_in_root(whole, one.selector or "/", os.O_PATH)
        except OSError as error:
            what = f"failed to mount {one.target}: {one.selector or '/'}: {_reason(error)}"
            raise InvalidParameter(what) from None
        try:
            _make_point(place, stat.S_ISDIR(os.fstat(found).st_mode))
            bind(f"/proc/self/fd/{found}", str(place), readonly=one.read_only)
        finally:
            os.close(found)

    def _private(self) -> Path:
        """A directory in memory alone."""
        directory = self._staging / _PRIVATE
        if not directory.exists():
            directory.mkdir(mode=0o700)
            mount("tmpfs", str(directory), "tmpfs", MS_NOSUID | MS_NODEV, f"mode=0700,size={self._private_size}")
        return directory

    def _in_memory(self, number: int, secret: Secret) -> Path:
        path = self._private() / str(number)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(secret.data)
        _give(path, secret.uid, secret.gid, secret.mode)
        return path

    def _listen(self, number: int, wanted: Socket) -> Path:
        directory = self._private()
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sockets.append(listener)
        try:
            # Through the descriptor, because the path may be longer than a socket's address can be.
            listener.bind(f"/proc/self/fd/{fd}/{number}")
        finally:
            os.close(fd)
        listener.listen()
        listener.setblocking(False)
        _give(directory / str(number), wanted.uid, wanted.gid, wanted.mode)
        return directory / str(number)

    # --- the root ----------------------------------------------------------------------------------------------------

    def _mount_root(self, root: Layered, mounts: Sequence[StepMount]) -> None:
        lower = [*root.lower, str(self._points)]
        if mounts:
            own = self._directory / "points"
            own.mkdir(mode=0o755, parents=True)
            for one in mounts:
                _make_target(own, one)
            lower.insert(-1, str(own))
        self.rootfs.mkdir()
        # What is kept of it is synced in the background, as layers are.
        mount_overlay(lower, root.upper, root.work, str(self.rootfs), volatile=True)

    def _fill(self, mounts: Sequence[StepMount], sources: Sequence[Path | None]) -> tuple[SpecMount, ...]:
        for path in ("/proc", "/sys", "/dev"):
            os.close(self._point(path, True))
        left = []
        places: list[tuple[str, StepMount | None, Path | None]]
        places = [(one.target, one, source) for one, source in zip(mounts, sources, strict=True)]
        taken = {target for target, *_ in places}
        places += [
            (target, None, source)
            for target, source in (("/etc/hosts", self._hosts), ("/etc/resolv.conf", self._resolv_conf))
            if target not in taken
        ]
        # What lies above comes first, whatever order it was written in.
        for target, one, source in sorted(places, key=lambda place: place[0].count("/")):
            if one is not None and f"{target}/".startswith(_RUNTIMES):
                left.append(_for_runtime(one, source))
            elif source is None:
                assert one is not None
                assert isinstance(one.source, MemoryFiles)
                self._mount_memory(target, one.source, one.read_only)
            else:
                # Files of ours, in memory: a step could fill it. Other sources are read-only where they are staged.
                ours = one is None or isinstance(one.source, Secret)
                self._mount_at(target, source, read_only=ours)
        return tuple(left)

    def _mount_at(self, target: str, source: Path, *, read_only: bool) -> None:
        point = self._point(target, source.is_dir())
        try:
            bind(str(source), f"/proc/self/fd/{point}")
        finally:
            os.close(point)
        if read_only:
            mounted = self._point(target, source.is_dir())
            try:
                views.restrict(mounted, readonly=True)
            finally:
                os.close(mounted)

    def _mount_memory(self, target: str, memory: MemoryFiles, read_only: bool) -> None:
        point = self._point(target, True)
        try:
            options = f"size={memory.size}" if memory.size else ""
            mount("tmpfs", f"/proc/self/fd/{point}", "tmpfs", MS_NOSUID | (MS_RDONLY if read_only else 0), options)
        finally:
            os.close(point)

    def _point(self, target: str, directory: bool) -> int:
        """A descriptor of the place in the root to mount on, which is made where there is none."""
        root = self.rootfs
        try:
            try:
                found = rooted.open_in_root(root, target, os.O_PATH)
            except FileNotFoundError:
                make = rooted.make_directories if directory else rooted.make_file_where_it_leads
                make(root, target)
                found = rooted.open_in_root(root, target, os.O_PATH)
        except OSError as error:
            raise InvalidParameter(f"cannot mount on {target}: {_reason(error)}") from None
        if stat.S_ISDIR(os.fstat(found).st_mode) != directory:
            os.close(found)
            wrong = "it is not a directory" if directory else "it is a directory"
            raise InvalidParameter(f"cannot mount on {target}: {wrong}")
        return found


def make_points(top: Path) -> None:
    """Make the directory below all layers, with what every step has something mounted on."""
    if (top / _FILES[-1]).exists():
        return
    for directory in _DIRECTORIES:
        (top / directory).mkdir(parents=True, exist_ok=True)
    for file in _FILES:
        (top / file).touch(mode=0o644)


def check_target(target: str) -> str:
    """The place of a mount in its plain form. InvalidParameter where nothing may be mounted."""
    path = posixpath.normpath(posixpath.join("/", target))
    path = "/" + path.lstrip("/")
    if path == "/":
        raise InvalidParameter(f'invalid mount target "{target}"')
    if path == "/proc" or path.startswith("/proc/"):
        raise InvalidParameter(f'"{path}" cannot be mounted because it is inside /proc')
    return path


def _make_target(points: Path, one: StepMount) -> None:
    """Make the file or directory that a mount lies on. Where the two want the same place, the first has it."""
    path = points / one.target.lstrip("/")
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        if isinstance(one.source, Secret | Socket):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o644)
        elif isinstance(one.source, MemoryFiles | Directory) or not one.selector:
            path.mkdir(parents=True, exist_ok=True)
        else:
            # It may be a file: what is missing is made when that is known.
            path.parent.mkdir(parents=True, exist_ok=True)


def _for_runtime(one: StepMount, source: Path | None) -> SpecMount:
    access = ("ro",) if one.read_only else ()
    if isinstance(one.source, MemoryFiles):
        size = (f"size={one.source.size}",) if one.source.size else ()
        return SpecMount(one.target, "tmpfs", "tmpfs", ("nosuid", *size, *access))
    return SpecMount(one.target, "bind", str(source), ("bind", "private", *access))


def _room_for(secrets: Sequence[bytes]) -> int:
    """Compute the bytes that a tmpfs needs for files with these contents, with a little for names and sockets."""
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(-(-len(data) // page) * page for data in secrets) + 16 * page


def _make_point(place: Path, directory: bool) -> None:
    if directory:
        place.mkdir()
    else:
        place.touch()


def _give(path: Path, uid: int, gid: int, mode: int) -> None:
    os.chown(path, uid, gid)
    os.chmod(path, mode & 0o777)


def _check(failures: Sequence[str]) -> None:
    if failures:
        raise SystemFault("cannot release the file system of a build's step: " + "; ".join(failures))


def _reason(error: OSError) -> str:
    number = error.errno or errno.EIO
    return (error.strerror or os.strerror(number)).lower()
