"""The need for services at a start of the daemon: only if something is left of a swarm, be it in the middle of leaving.

Most daemons never see a swarm: for them the rest of this package is not even loaded.
"""

import asyncio

from husk.config import Config
from husk.engine.networks.service import Networks
from husk.storage.secrets.traces import any_left
from husk.storage.state.store import StateStore

KINDS = ("swarm", "membership", "node", "service", "task", "secret", "config")
# Networks that this host shares with others of its swarm.
OVERLAY = "overlay"
# In the data root, and in the exec root.
KEY = "swarm.key"
NODE = "swarm.node"
MEMBER = "swarm.etcd"
TASK_FILES = "secrets"


async def wanted(config: Config, state: StateStore, networks: Networks) -> bool:
    if config.cluster_store is not None or state.has(*KINDS):
        return True
    if any(network.scope == "swarm" for network in networks.listing()):
        return True
    return await asyncio.to_thread(any_left, config.data_root / KEY, config.exec_root / TASK_FILES)
