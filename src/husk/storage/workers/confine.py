"""Confinement of a worker to a container's files: a mount namespace with the container's root as `/`.

The view has the container's mounts in it: bind mounts and volumes, as dockerd's copies have, and the tmpfs of one that
runs. It has neither /proc nor /dev, in which a link could lead to another root. Devices in it cannot be opened and
programs not run, so that neither a hostile container nor a hostile archive has anything to get hold of.
"""

import os
import stat
import sys

from husk.kernel import views
from husk.kernel.rooted import make_directories, make_file, open_in_root
from husk.storage.workers.parts import NO_MEMORY, Bind, Memory


def enter(directory: str) -> None:
    """Make a directory this process' root; only what is imported already can be used."""
    os.chroot(directory)
    os.chdir("/")
    os.umask(0)
    _forget_imports()


def confine(root: str, binds: list[Bind], memory: Memory = NO_MEMORY) -> set[str]:
    """Make `root`, with `binds` and `memory` mounted in it, this process' whole world.

    Only what is imported already can be used. Return the places of `memory` that are there.
    """
    # Only from the host's own namespace can the container's be entered.
    taken = views.memory_of(memory.process, root, memory.places) if memory.process and memory.places else {}
    views.unshare()
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    views.bind(root, top)
    os.close(top)
    mounts: list[tuple[str, Bind | int]] = [*((item.target, item) for item in binds), *taken.items()]
    for target, each in sorted(mounts, key=lambda item: item[0].count("/")):
        if isinstance(each, Bind):
            _mount(root, each)
        else:
            _attach(root, target, each)
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    views.restrict(top)
    os.close(top)
    views.pivot(root)
    os.umask(0)
    _forget_imports()
    return set(taken)


def enter_alone(root: str) -> None:
    """Make `root`, with nothing else mounted in it, this process' whole world."""
    confine(root, [])


def _forget_imports() -> None:
    """Prevent further imports, which would now come out of the container's files, or the layer's."""
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_importer_cache.clear()


def _mount(root: str, item: Bind) -> None:
    try:
        status = os.stat(item.source)
    except FileNotFoundError:
        # Made at the container's first start; before that the container has an empty place there.
        return
    target = _place(root, item.target, stat.S_ISDIR(status.st_mode))
    try:
        views.bind(item.source, target)
    finally:
        os.close(target)
    if item.readonly:
        mounted = open_in_root(root, item.target, os.O_PATH)
        try:
            views.restrict(mounted, readonly=True)
        finally:
            os.close(mounted)


def _attach(root: str, place: str, tree: int) -> None:
    """Put a copy of a tmpfs where the container has it."""
    target = _place(root, place, directory=True)
    try:
        views.attach(tree, target)
    finally:
        os.close(target)
        os.close(tree)


def _place(root: str, target: str, directory: bool) -> int:
    """A descriptor of what is to be mounted on, made as the runtime makes it at the start if it is not there."""
    try:
        return open_in_root(root, target, os.O_PATH)
    except FileNotFoundError:
        make_directories(root, target if directory else os.path.dirname(target))
    if not directory:
        make_file(root, target)
    return open_in_root(root, target, os.O_PATH)
