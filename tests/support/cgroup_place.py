"""The place of a container's control group, for tests that read what the kernel says of it."""

from pathlib import Path

from husk.kernel import cgroups


def locate(path: str, controller: str = "") -> Path | None:
    """The directory of a cgroup in the tree of a controller (v2: in the one tree), None when it does not exist."""
    for tree in cgroups.hierarchies():
        wanted = tree.version == 2 and tree.path == cgroups.ROOT if not controller else controller in tree.controllers
        directory = tree.path / path.strip("/")
        if wanted and directory.is_dir():
            return directory
    return None
