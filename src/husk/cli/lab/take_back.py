"""Takes back whatever is left of a lab: safe to call twice, and after any crash."""

import socket
import time
from contextlib import suppress

from husk.cli.lab.layout import MOST, USUAL_SUBNET, Lab, planned
from husk.config import Config
from husk.errors import SystemFault
from husk.kernel import cgroups
from husk.kernel.process import kill_given
from husk.kernel.trees import discard_tree
from husk.network.wireguard.program import socket_of

# How long the kernel may take to end namespaces, in seconds.
PATIENCE = 20.0


class LabRemains:
    """Things of a lab on this machine, beside its directories."""

    def kill(self, mark: str) -> None:
        """End the processes that have this argument."""
        kill_given([mark], PATIENCE)

    def has_interface(self, name: str) -> bool:
        with suppress(OSError):
            return bool(socket.if_nametoindex(name))
        return False

    def remove_cgroup(self, parent: str) -> None:
        """With all processes in it."""
        cgroups.kill_all(parent)
        cgroups.remove(parent)

    def remove_tunnel(self, name: str) -> None:
        """The socket of a program that keeps a tunnel."""
        socket_of(name).unlink(missing_ok=True)


def take_back(lab: Lab, remains: LabRemains | None = None, patience: float = PATIENCE) -> None:
    """Ends the lab's process, and with it all daemons and containers; then removes their directories."""
    remains = remains or LabRemains()
    remains.kill(lab.mark)
    deadline = time.monotonic() + patience
    while remains.has_interface(lab.name):
        if time.monotonic() > deadline:
            raise SystemFault(
                f"the interface {lab.name} does not go away: is another program in a namespace of the lab?"
            )
        time.sleep(0.02)
    # A former lab of that name may have had more hosts.
    for host in planned(lab.name, MOST, USUAL_SUBNET, lab.places).hosts:
        config = Config(data_root=host.data_root, exec_root=host.exec_root)
        remains.remove_cgroup(config.cgroup_parent)
        remains.remove_tunnel(config.tunnel_name)
    for directory in (lab.data, lab.run):
        if directory.exists() and not discard_tree(directory):
            raise SystemFault(f"{directory} cannot be removed")
        with suppress(OSError):  # other labs are there, or none ever was
            directory.parent.rmdir()
