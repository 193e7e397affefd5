"""Confinement of a worker to a container's files: a mount namespace with the container's root as `/`.

The view has the container's mounts in it, as dockerd's copies have: bind mounts and volumes, not its tmpfs, /proc or
/dev, which exist only inside a running container. Devices in it cannot be opened and programs not run, so that neither
a hostile container nor a hostile archive has anything to get hold of.
"""

import os
import stat
import sys

from husk.kernel import views
from husk.kernel.rooted import make_directories, make_file, open_in_root
from husk.storage.workers.parts import Bind


def enter(directory: str) -> None:
    """Make a directory this process' root; only what is imported already can be used."""
    os.chroot(directory)
    os.chdir("/")
    os.umask(0)
    _forget_imports()


def confine(root: str, binds: list[Bind]) -> None:
    """Make `root`, with `binds` mounted in it, this process' whole world; only what is imported already can be used."""
    views.unshare()
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    views.bind(root, top)
    os.close(top)
    for item in sorted(binds, key=lambda item: item.target.count("/")):
        _mount(root, item)
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    views.restrict(top)
    os.close(top)
    views.pivot(root)
    os.umask(0)
    _forget_imports()


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


def _place(root: str, target: str, directory: bool) -> int:
    """A descriptor of what is to be mounted on, made as the runtime makes it at the start if it is not there."""
    try:
        return open_in_root(root, target, os.O_PATH)
    except FileNotFoundError:
        make_directories(root, target if directory else os.path.dirname(target))
    if not directory:
        make_file(root, target)
    return open_in_root(root, target, os.O_PATH)
