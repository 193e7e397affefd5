"""The cluster store that exists already, as the daemon was told of it."""

from husk.config import ClusterStoreConfig
from husk.errors import InvalidParameter
from husk.swarm.state import etcd
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.etcd.certificates import CertificateFiles


def open_store(config: ClusterStoreConfig, shut: str = "") -> ClusterStore:
    """Nobody is asked yet, and while it is `shut`, which says why, nobody at all. InvalidParameter for certificates
    that cannot be used. Blocks."""
    if shut:
        return etcd.store.EtcdStore.shut(config.address, shut)
    certificates = CertificateFiles(*config.certificates) if config.certificates is not None else None
    try:
        return etcd.store.EtcdStore.open(config.address, certificates)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"--cluster-store {config.address}: {error.message}. Check kv.cacertfile, kv.certfile and kv.keyfile of "
            "--cluster-store-opt"
        ) from None
