"""The cluster store that exists already, as the daemon was told of it. Nothing of it is loaded where there is none."""

from husk.config import ClusterStoreConfig
from husk.errors import InvalidParameter
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.etcd.certificates import Certificates
from husk.swarm.state.etcd.store import EtcdStore


def open_store(config: ClusterStoreConfig, shut: str = "") -> ClusterStore:
    """Nobody is asked yet, and while it is `shut`, which says why, nobody at all. InvalidParameter for certificates
    that cannot be used. Blocks."""
    if shut:
        return EtcdStore.shut(config.address, shut)
    certificates = Certificates(*config.certificates) if config.certificates is not None else None
    try:
        return EtcdStore.open(config.address, certificates)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"--cluster-store {config.address}: {error.message}. Check kv.cacertfile, kv.certfile and kv.keyfile of "
            "--cluster-store-opt"
        ) from None
