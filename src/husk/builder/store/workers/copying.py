"""Copies of files from one file system of a build into another: as `cp -a` would copy them, in BuildKit's ways.

Directories are merged. The metadata of directories that exist is replaced, but for the topmost. What patterns leave out
is passed over; a directory that no pattern names itself is made when something in it is copied. As in `trees`, depth
costs no descriptors and no path becomes too long.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.file_data import copy_data, copy_xattrs_of_name, set_xattrs, xattrs_of
from husk.builder.store.workers.layer_tar import LayerTar, foresee
from husk.builder.store.workers.listed_tree import ListedTree, WantedCopy, is_much, list_tree
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree, remove_all
from husk.kernel.rooted import open_beneath
from husk.kernel.tree_cursor import DIRECTORY, TreeCursor
from husk.text.globs import Patterns

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A path relative to an open directory must stay below PATH_MAX with any name (at most 255 bytes) added to it.
_LONGEST_RELATIVE = 3000
_DEFAULT_ACL = "system.posix_acl_default"


class _Place(NamedTuple):
    """The present place in both file systems. On the disk everything is new: nothing can be in the way."""

    here: TreeCursor
    there: TreeCursor
    top: str
    on_disk: bool


class _Level:
    """A directory on the way: its names that are still to be copied, the first last."""

    def __init__(self, name: str, status: os.stat_result, fd: int, wanted: bool) -> None:
        self.name = name
        self.status = status
        self.names = sorted(os.listdir(fd), key=os.fsencode, reverse=True)
        # Whether patterns name the directory itself, and whether it is there at the destination.
        self.wanted = wanted
        self.made = wanted
        self.xattrs = {} if wanted else xattrs_of(fd)


class TreeCopier:
    """Copies one thing, file or directory."""

    def __init__(
        self,
        source: RootedTree,
        target: RootedTree,
        look: CopyLook,
        include: Patterns | None = None,
        exclude: Patterns | None = None,
        replace: bool = False,
        tar: LayerTar | None = None,
    ) -> None:
        """With `replace`, what is in the way goes, though it be of another kind. `tar` is told all that is made."""
        self._source = source
        self._target = target
        self._look = look
        self._include = include
        self._exclude = exclude
        self._replace = replace
        self._tar = tar
        # The same if what is copied is a single file, which is told while it is copied.
        self._single: LayerTar | None = None
        self._first_names: dict[tuple[int, int], str] = {}
        self._top = ""
        self._me = (os.geteuid(), os.getegid())
        # Whether the new directory that is being filled hands its group or access on to what is made in it.
        self._hands_on = False
        # The bytes of files that were made; None if they took the place of others.
        self.size: int | None = 0

    def copy(self, source: str, target: str, new: bool = False) -> None:
        """Both are resolved paths; what is above `target` is there. `new`: so is that, without anything in it."""
        self._top = target
        status = os.stat(source or ".", dir_fd=self._source.fd, follow_symlinks=False)
        with self._source.above(source) as (here, name), self._target.above(target) as (there, new_name):
            if stat.S_ISDIR(status.st_mode):
                created = self._make_directory(there, new_name, status, target)
                with (
                    self._source.directory(source) as one,
                    self._inside(target, created or new) as (other, on_disk),
                ):
                    listed = self._listed(source, one, target) if on_disk else None
                    if self._tar is not None:
                        # One of a layer below becomes one of this layer now, and not with the first file in it.
                        os.utime(other, ns=self._look.times_of(status))
                        self._tar.top(target, self._foreseen(status) if created else None, one)
                    if listed is not None:
                        self._copy_listed(listed, one, other, (source, target))
                    else:
                        with self._told(target, one):
                            self._copy_content(one, other, status, target, on_disk)
                if created:
                    with self._source.directory(source) as one, self._target.directory(target) as other:
                        self._adopt_open(other, status, xattrs_of(one))
                else:
                    with self._target.directory(target) as other:
                        os.utime(other, ns=self._look.times_of(status))
            else:
                self._single = self._tar
                self._copy_file(here, name, there, new_name, status, target, on_disk=False)

    def _listed(self, path: str, source: int, target: str) -> ListedTree | None:
        """All that is in a directory, if it can be copied without a look at it."""
        told = self._source.told
        chosen = self._include is not None or self._exclude is not None
        if told is None or chosen or self._hands_on or (self._tar is not None and self._tar.is_elsewhere):
            return None
        found = told.below(path) if not path or is_much(source) else None
        if found is None:
            return None
        look = self._look
        seen, former = None if look.is_same else look.seen, told.tar(look.key(target)) or b""
        return list_tree(found, WantedCopy(target, seen, lambda link: os.readlink(link, dir_fd=source), former))

    def _copy_listed(self, listed: ListedTree, source: int, target: int, names: tuple[str, str]) -> None:
        """From and to open directories with these names."""

        def copy(tar: int, begin: int) -> int:
            listed.copy(source, target, tar, begin)
            return listed.size

        def packed(begin: int, blob: str) -> None:
            if self._source.told is not None:
                self._source.told.remember(names[0], listed.places(begin), self._look.key(names[1]), blob)

        if self._tar is None:
            copy(-1, 0)
        else:
            self._tar.listed_tree(copy, packed)
        if self.size is not None:
            self.size += listed.bytes

    def _told(self, target: str, source: int) -> contextlib.AbstractContextManager[None]:
        """The content of a directory is copied within this block."""
        if self._tar is None:
            return contextlib.nullcontext()
        return self._tar.tree(target, source, self._foreseen)

    def _foreseen(self, status: os.stat_result) -> os.stat_result:
        """Return the status that the copy of such a file will have."""
        look = self._look
        if look.is_same:
            return status
        # Links have all the same mode.
        mode = None if stat.S_ISLNK(status.st_mode) else look.mode_of(status)
        return foresee(status, mode=mode, owner=look.owner_of(status), mtime=look.times_of(status)[1])

    def adopt_directory(self, path: str, status: os.stat_result) -> None:
        """Give a directory that both have the look of the source's."""
        with self._source.directory(path) as one, self._target.directory(path) as other:
            self._adopt_open(other, status, xattrs_of(one))

    # --- directories

    @contextlib.contextmanager
    def _inside(self, target: str, new: bool) -> Iterator[tuple[int, bool]]:
        """A directory to fill: a new one where it is on the disk, which is faster, if we know where. Is it that?"""
        found = None
        if new and self._target.on_disk is not None:
            with contextlib.suppress(OSError):  # its path may be too long
                found = open_beneath(self._target.on_disk, target or ".", DIRECTORY)
        if found is None:
            with self._target.directory(target) as fd:
                yield fd, False
            return
        try:
            self._hands_on = bool(os.fstat(found).st_mode & stat.S_ISGID) or _DEFAULT_ACL in os.listxattr(found)
            if self._hands_on and self._tar is not None:
                self._tar.give_up()
            yield found, True
        finally:
            os.close(found)

    def _copy_content(self, one: int, other: int, status: os.stat_result, shown: str, on_disk: bool) -> None:
        with TreeCursor(one) as here, TreeCursor(other) as there:
            levels = [_Level("", status, here.fd, True)]
            place = _Place(here, there, shown, on_disk)
            simple = on_disk and self._include is None and self._exclude is None
            while levels:
                if levels[-1].names:
                    name = levels[-1].names.pop()
                    if not simple or not self._copy_plain(here.fd, there.fd, name):
                        self._copy_entry(levels, name, place)
                else:
                    self._leave(levels, here, there)

    def _copy_plain(self, here: int, there: int, name: str) -> bool:
        """Copy what is most frequent, a plain file with one name into a new directory; False if it is another thing."""
        status = os.stat(name, dir_fd=here, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
        self._copy_regular(here, name, there, name, status, "", not self._hands_on)
        if self.size is not None:
            self.size += status.st_size
        return True

    def _copy_entry(self, levels: list[_Level], name: str, place: "_Place") -> None:
        here, there = place.here, place.there
        wanted, left_out = self._judge(here, name)
        brings_back = self._exclude is not None and self._exclude.brings_back
        if not wanted and self._include is None and not brings_back:
            return
        status = os.stat(name, dir_fd=here.fd, follow_symlinks=False)
        directory = stat.S_ISDIR(status.st_mode)
        if not wanted and (not directory or (left_out and not brings_back)):
            return
        if wanted:
            self._make_parents(levels, there)
            shown = "/".join([place.top, *there.names, name])
            if not directory:
                self._copy_file(here.fd, name, there.fd, name, status, shown, place.on_disk)
                return
            created = self._make_directory(there.fd, name, status, shown)
            if created and not place.on_disk and self._copy_new(place, name, status, shown):
                return
            there.down(name)
        here.down(name)
        if wanted and self._tar is not None and not place.on_disk:
            self._tar.check_directory(there.fd)
            if created:
                self._tar.give_up()
        levels.append(_Level(name, status, here.fd, wanted))

    def _copy_new(self, place: "_Place", name: str, status: os.stat_result, shown: str) -> bool:
        """Fill a new directory on the disk, if that can be; patterns need the whole way to it."""
        if self._target.on_disk is None or self._include is not None or self._exclude is not None:
            return False
        with self._inside(shown.lstrip("/"), True) as (other, on_disk):
            if not on_disk:
                return False
            one = os.open(name, DIRECTORY, dir_fd=place.here.fd)
            try:
                if self._tar is not None:
                    self._tar.check_directory(other)
                self._copy_content(one, other, status, shown, True)
                there = os.open(name, DIRECTORY, dir_fd=place.there.fd)
                try:
                    self._adopt_open(there, status, xattrs_of(one))
                finally:
                    os.close(there)
            finally:
                os.close(one)
        return True

    def _judge(self, here: TreeCursor, name: str) -> tuple[bool, bool]:
        """Tell if patterns want this file, and if they leave it out."""
        if self._include is None and self._exclude is None:
            return True, False
        path = "/".join([*here.names, name])
        left_out = self._exclude is not None and self._exclude.matches(path)
        return not left_out and (self._include is None or self._include.matches(path)), left_out

    def _make_parents(self, levels: list[_Level], there: TreeCursor) -> None:
        """Directories that patterns do not name, but that something in them needs."""
        first = len(levels)
        while first and not levels[first - 1].made:
            first -= 1
        for level in levels[first:]:
            if self._make_directory(there.fd, level.name, level.status, "/".join([self._top, *there.names])):
                there.down(level.name)
                self._adopt_open(there.fd, level.status, level.xattrs)
            else:
                there.down(level.name)
            level.made = True

    def _leave(self, levels: list[_Level], here: TreeCursor, there: TreeCursor) -> None:
        level = levels.pop()
        if not levels:
            return
        if level.wanted:
            self._adopt_open(there.fd, level.status, xattrs_of(here.fd))
        elif level.made:
            os.utime(there.fd, ns=self._look.times_of(level.status))
        if not here.up() or (level.made and not there.up()):
            raise OSError(errno.ESTALE, "a directory was moved away while it was copied", level.name)

    def _make_directory(self, there: int, name: str, status: os.stat_result, shown: str) -> bool:
        """Make the directory unless it is there, and tell if it was made."""
        try:
            os.mkdir(name, stat.S_IMODE(status.st_mode), dir_fd=there)
            return True
        except FileExistsError:
            found = os.stat(name, dir_fd=there, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return False
        if not self._replace:
            raise ActionFailed(f"cannot copy to non-directory: /{shown.lstrip('/')}")
        self.size = None
        os.unlink(name, dir_fd=there)
        os.mkdir(name, stat.S_IMODE(status.st_mode), dir_fd=there)
        return True

    # --- all else

    def _copy_file(
        self, here: int, name: str, there: int, new_name: str, status: os.stat_result, shown: str, on_disk: bool
    ) -> None:
        if not on_disk:
            self._make_room(there, new_name, shown)
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            if not self._link(there, new_name, status, on_disk):
                self._copy_regular(here, name, there, new_name, status, shown, on_disk and not self._hands_on)
                self._remember(status, shown)
                if self.size is not None:
                    self.size += status.st_size
            return
        if kind == stat.S_IFLNK:
            os.symlink(os.readlink(name, dir_fd=here), new_name, dir_fd=there)
        else:
            # Of a socket an empty file is left.
            node = stat.S_IFREG if kind == stat.S_IFSOCK else kind
            os.mknod(new_name, node | stat.S_IMODE(status.st_mode), status.st_rdev, dir_fd=there)
        os.chown(new_name, *self._look.owner_of(status), dir_fd=there, follow_symlinks=False)
        if kind != stat.S_IFLNK:
            os.chmod(new_name, self._look.mode_of(status), dir_fd=there)
        os.utime(new_name, ns=self._look.times_of(status), dir_fd=there, follow_symlinks=False)
        copy_xattrs_of_name(here, name, there, new_name)
        if self._single is not None:
            self._single.add(shown.lstrip("/"), there, new_name)

    def _make_room(self, there: int, name: str, shown: str) -> None:
        try:
            found = os.stat(name, dir_fd=there, follow_symlinks=False)
        except FileNotFoundError:
            return
        self.size = None
        if stat.S_ISDIR(found.st_mode) and not self._replace:
            raise ActionFailed(f"cannot replace to directory /{shown.lstrip('/')} with file")
        remove_all(there, name)

    def _link(self, there: int, name: str, status: os.stat_result, on_disk: bool) -> bool:
        """A file with several names is copied once."""
        first = self._first_names.get((status.st_dev, status.st_ino)) if status.st_nlink > 1 else None
        if status.st_nlink > 1 and self._tar is not None:
            self._tar.give_up()
        if first is None:
            return False
        parent, _, base = first.rpartition("/")
        # What was copied is at the same place in both.
        top = self._target.on_disk if on_disk and self._target.on_disk is not None else self._target.fd
        above = open_beneath(top, parent or ".", os.O_PATH | os.O_DIRECTORY)
        try:
            os.link(base, name, src_dir_fd=above, dst_dir_fd=there, follow_symlinks=False)
        finally:
            os.close(above)
        return True

    def _remember(self, status: os.stat_result, shown: str) -> None:
        path = shown.lstrip("/")
        if status.st_nlink > 1 and len(os.fsencode(path)) <= _LONGEST_RELATIVE:
            self._first_names[status.st_dev, status.st_ino] = path

    def _copy_regular(
        self, here: int, name: str, there: int, new_name: str, status: os.stat_result, shown: str, plain: bool
    ) -> None:
        """A `plain` directory hands nothing on to what is made in it."""
        source = os.open(name, _READ, dir_fd=here)
        try:
            mode = self._look.mode_of(status)
            target = os.open(new_name, _CREATE, mode & 0o777, dir_fd=there)
            try:
                data = b""
                if self._single is None:
                    copy_data(source, target, status)
                else:
                    shown = shown.lstrip("/")
                    data = self._single.copy_data(shown, source, target, status, self._foreseen)
                # Mostly it looks right already.
                if mode & ~0o777 or not plain or self._look.owner_of(status) != self._me:
                    os.fchown(target, *self._look.owner_of(status))
                    os.fchmod(target, mode)
                if xattrs := xattrs_of(source):
                    set_xattrs(target, xattrs)
                os.utime(target, ns=self._look.times_of(status))
                if self._single is not None:
                    self._single.add_file(shown, there, new_name, target, data, plain and not xattrs)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _adopt_open(self, target: int, status: os.stat_result, xattrs: dict[str, bytes]) -> None:
        os.fchown(target, *self._look.owner_of(status))
        os.fchmod(target, self._look.mode_of(status))
        set_xattrs(target, xattrs)
        os.utime(target, ns=self._look.times_of(status))
