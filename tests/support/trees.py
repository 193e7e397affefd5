"""File systems of builds for tests, and what is in them."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from husk.builder.store.contexts import Contexts
from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory, MakeFile, Remove, Symlink
from husk.builder.store.trees import Trees
from husk.kernel.mount import mount_overlay, unmount
from tests.support.layers import Store


def deepen(top: Path, levels: int = 2500, bottom: str = "") -> None:
    """Directories in one another, more than a path can name; in the last one an empty file `bottom`, if it is given."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    if bottom:
        os.close(os.open(bottom, os.O_CREAT, dir_fd=fd))
    os.close(fd)


class Forest:
    """A store of diffs, with a way to make stacks of them and to look at what they show."""

    def __init__(self, store: Store, scratch: Path) -> None:
        self.store = store
        self.diffs = store.diffs
        self.trees = Trees(store.diffs, store.nursery)
        self.contexts = Contexts(store.diffs, store.nursery)
        self._scratch = scratch

    async def plant(self, fill: Callable[[Path], object], below: str = "") -> str:
        """A stack with one diff more, that `fill` writes."""
        async with self.diffs.workspace(below) as space:
            fill(space.upper)
            return " ".join(filter(None, [below, await space.keep()]))

    async def files(self, below: str = "", **files: str) -> str:
        """Files by their paths, in which two underscores are a slash."""

        def fill(root: Path) -> None:
            for name, text in files.items():
                path = root / name.replace("__", "/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

        return await self.plant(fill, below)

    @contextmanager
    def shown(self, stack: str) -> Iterator[Path]:
        """A stack as a step would see it."""
        self._scratch.mkdir(exist_ok=True)
        if stack:
            lower = [*self.diffs.lower(stack), str(self.diffs.directories.empty)]
            mount_overlay(lower, "", "", str(self._scratch))
        try:
            yield self._scratch
        finally:
            unmount(str(self._scratch))

    def listing(self, stack: str) -> dict[str, str]:
        """All paths of a stack, directories with a slash, with the text of files or the targets of links."""
        with self.shown(stack) as root:
            return {found: what for path in sorted(root.rglob("*")) for found, what in [_shown(path, root)]}

    def status(self, stack: str, path: str) -> os.stat_result:
        with self.shown(stack) as root:
            return (root / path).lstat()

    def mode(self, stack: str, path: str) -> int:
        return stat.S_IMODE(self.status(stack, path).st_mode)

    def owner(self, stack: str, path: str) -> tuple[int, int]:
        status = self.status(stack, path)
        return status.st_uid, status.st_gid


def _shown(path: Path, root: Path) -> tuple[str, str]:
    name = str(path.relative_to(root))
    if path.is_symlink():
        return name, f"-> {os.readlink(path)}"
    if path.is_dir():
        return f"{name}/", ""
    return name, path.read_text() if path.is_file() else "?"


Action = Copy | MakeFile | MakeDirectory | Symlink | Remove


async def do(forest: Forest, action: Action, target: str = "", source: str = "") -> str:
    """One action on one file system, from another."""
    step = FileAction(action=action, input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([step], [target, source])
    return stack


def copy(source: str, destination: str, **options: object) -> Copy:
    """As a Dockerfile's COPY says it."""
    words = {"follow_links": True, "contents_only": True, "make_parents": True, "wildcards": True, **options}
    return Copy(source=source, destination=destination, **words)  # type: ignore[arg-type]
