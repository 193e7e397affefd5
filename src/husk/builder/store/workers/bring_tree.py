"""A program that copies all that is in one directory into another, as `cp --archive`, whoever changes both meanwhile.

    python -m husk.builder.store.workers.bring_tree SOURCE TARGET

Containers may be at work in either. So the two are all that there is in this process' world: a directory that is
exchanged for a link in the middle leads nowhere, and devices cannot be opened. What the target has already is replaced.
It is a process of its own, and no job of a worker, for who moves to Husk has no daemon's workers at hand.
"""

import os
import sys
import tempfile
from collections.abc import Sequence

from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.copying import TreeCopier
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree
from husk.kernel import views
from husk.kernel.mount import mount

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FROM, _TO = "/from", "/to"


def enter(source: str, target: str) -> None:
    """Make the two, as `/from` and `/to`, this process' whole world. Only what is imported already can be used then."""
    views.unshare()
    found = [os.open(path, _DIRECTORY) for path in (source, target)]
    # Any directory will do to mount on: nobody else sees that.
    root = tempfile.gettempdir()
    mount("tmpfs", root, "tmpfs", data="mode=0755,size=1m")
    for name, directory in zip((_FROM, _TO), found, strict=True):
        _show(directory, root + name, readonly=name == _FROM)
        os.close(directory)
    views.pivot(root)
    os.umask(0)
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_importer_cache.clear()


def _show(directory: int, place: str, readonly: bool) -> None:
    os.mkdir(place, 0o755)
    below = os.open(place, _DIRECTORY)
    views.bind(f"/proc/self/fd/{directory}", below)
    os.close(below)
    shown = os.open(place, _DIRECTORY)
    views.restrict(shown, readonly=readonly)
    os.close(shown)


def bring(source: str = _FROM, target: str = _TO) -> None:
    """Copy what is in one directory into another, which gets the first one's look."""
    here, there = RootedTree(source), RootedTree(target)
    copier = TreeCopier(here, there, CopyLook(), replace=True)
    copier.copy("", "")
    copier.adopt_directory("", os.fstat(here.fd))


def main(arguments: Sequence[str]) -> int:
    source, target = arguments
    try:
        enter(source, target)
        bring()
    except ActionFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
        sys.stderr.write(f"{f'{name}: ' if name else ''}{error.strerror or error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
