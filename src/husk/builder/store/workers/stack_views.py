"""Confinement of a worker to the file systems of a build: each is a directory of the worker's own view.

    show_stacks(root, empty, [Stack(lower=[...], upper="", work=""), ...])

The file systems are `/0`, `/1`, ... afterwards, and there is nothing else in the world of this process. Those without
an upper directory cannot be written to. `empty` is a directory with nothing in it.

With `common`, the directory that all of theirs are in, `/disk` shows that: what is new can be put there faster than
through overlayfs.
"""

import os
import sys
from collections.abc import Sequence

from husk.kernel import views
from husk.kernel.mount import mount, mount_overlay
from husk.storage.workers.parts import Stack

DISK = "disk"


def show_stacks(root: str, empty: str, stacks: list[Stack], names: Sequence[str] = (), common: str = "") -> None:
    """`root` is a directory to mount on. Only what is imported already can be used afterwards.

    With `names` the file systems have those instead of numbers.
    """
    views.unshare()
    mount("tmpfs", root, "tmpfs", data="mode=0755,size=1m")
    for name, stack in zip(names or range(len(stacks)), stacks, strict=True):
        target = f"{root}/{name}"
        os.mkdir(target, 0o755)
        if not stack.upper and stack.lower == [empty]:
            continue
        if stack.plain:
            _bind(stack.lower[0], target, readonly=True)
            continue
        # Without an upper directory overlayfs wants two; nothing shows through from the second.
        lower = stack.lower if stack.upper else [*stack.lower, empty]
        mount_overlay(lower, stack.upper, stack.work, target, volatile=True)
        descriptor = os.open(target, os.O_PATH | os.O_DIRECTORY)
        views.restrict(descriptor, readonly=not stack.upper)
        os.close(descriptor)
    if common:
        os.mkdir(f"{root}/{DISK}", 0o755)
        _bind(common, f"{root}/{DISK}", readonly=False)
    views.pivot(root)
    os.umask(0)
    # Whatever would still be imported would now come out of a build's files.
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_importer_cache.clear()


def _bind(source: str, target: str, readonly: bool) -> None:
    below = os.open(target, os.O_PATH | os.O_DIRECTORY)
    views.bind(source, below)
    os.close(below)
    descriptor = os.open(target, os.O_PATH | os.O_DIRECTORY)
    views.restrict(descriptor, readonly=readonly)
    os.close(descriptor)
