"""Takes back whatever is left of a lab: safe to call twice, and after any crash."""

import socket
import time
from contextlib import suppress

from husk.cli.lab.layout import Lab
from husk.config import Config
from husk.errors import SystemFault
from husk.kernel import cgroups
from husk.kernel.process import given, kill_given
from husk.kernel.trees import discard_tree

# How long the kernel may take to end namespaces, in seconds.
PATIENCE = 20.0


def is_up(lab: Lab) -> bool:
    return bool(given([lab.mark]))


def take_back(lab: Lab) -> None:
    """Ends the lab's process, and with it all daemons and containers; then removes their directories."""
    kill_given([lab.mark], PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while _has_interface(lab.name):
        if time.monotonic() > deadline:
            raise SystemFault(
                f"the interface {lab.name} does not go away: is another program in a namespace of the lab?"
            )
        time.sleep(0.02)
    for host in lab.hosts:
        parent = Config(data_root=host.data_root, exec_root=host.exec_root).cgroup_parent
        cgroups.kill_all(parent)
        cgroups.remove(parent)
    for directory in (lab.data, lab.run):
        if directory.exists() and not discard_tree(directory):
            raise SystemFault(f"{directory} cannot be removed")
        with suppress(OSError):  # other labs are there, or none ever was
            directory.parent.rmdir()


def _has_interface(name: str) -> bool:
    with suppress(OSError):
        return bool(socket.if_nametoindex(name))
    return False
