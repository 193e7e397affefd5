"""Takes back whatever is left of a lab: safe to call twice, and after any crash."""

import socket
import time
from contextlib import suppress

from husk.cli.lab.layout import MOST, USUAL_SUBNET, Lab, planned
from husk.config import Config
from husk.errors import SystemFault
from husk.kernel import cgroups
from husk.kernel.process import given, kill_given
from husk.kernel.trees import discard_tree
from husk.network.wireguard.program import socket_of

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
    # A former lab of that name may have had more hosts.
    for host in planned(lab.name, MOST, USUAL_SUBNET).hosts:
        config = Config(data_root=host.data_root, exec_root=host.exec_root)
        cgroups.kill_all(config.cgroup_parent)
        cgroups.remove(config.cgroup_parent)
        socket_of(config.tunnel_name).unlink(missing_ok=True)
    for directory in (lab.data, lab.run):
        if directory.exists() and not discard_tree(directory):
            raise SystemFault(f"{directory} cannot be removed")
        with suppress(OSError):  # other labs are there, or none ever was
            directory.parent.rmdir()


def _has_interface(name: str) -> bool:
    with suppress(OSError):
        return bool(socket.if_nametoindex(name))
    return False
