"""Which kernel settings may a container have of its own? Those that belong to one of its namespaces. Pure."""

from husk.engine.model.container_config import HostConfig
from husk.errors import InvalidParameter

_IPC_NAMES = """
msgmax msgmnb msgmni sem shmall shmmax shmmni shm_rmid_forced auto_msgmni sem_next_id msg_next_id shm_next_id
"""
_IPC = frozenset(f"kernel.{name}" for name in _IPC_NAMES.split())


def check(host: HostConfig) -> None:
    """Raise for a setting that would be the host's, or that the chosen namespaces make the host's."""
    for key in host.sysctls or {}:
        name = key.replace("/", ".")
        if not name.isascii() or not name.isprintable() or ".." in name:
            raise InvalidParameter(f'sysctl "{key}" is not in a separate kernel namespace')
        if name in _IPC or name.startswith("fs.mqueue."):
            if host.ipc_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" is not allowed in the hosts ipc namespace')
        elif name.startswith("net."):
            if host.network_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" not allowed in host network namespace')
        elif name == "kernel.domainname":
            if host.uts_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" is not allowed in the hosts uts namespace')
        elif name == "kernel.hostname":
            raise InvalidParameter(f'sysctl "{key}" is not allowed as it conflicts with the OCI "hostname" field')
        else:
            raise InvalidParameter(f'sysctl "{key}" is not in a separate kernel namespace')
